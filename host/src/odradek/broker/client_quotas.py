"""The client quotas of a host: their storage, and the rules for altering and finding them.

After ClientQuotaControlManager.java and ClientQuotasImage.java (Kafka 4.3), in Kafka's words.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from odradek.metadata.client_quota_store import ClientQuotaRow, ClientQuotaStore
from odradek.metadata.store import MetadataStore
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.quota.host_names import HostNames, plain_address
from odradek.quota.quota_managers import CONNECTION_RATE, QuotaManagers
from odradek.settings.state_limit import NameLimit, StateLimit
from odradek.waiting.clock import Clock
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigType
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX, INT64_MAX

log = logging.getLogger(__name__)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (CLIENT_ID, USER, IP)
"""In the order in which Kafka names the parts of an entity."""
CLIENT_KEYS: Mapping[str, ConfigType] = {
    "producer_byte_rate": ConfigType.LONG,
    "consumer_byte_rate": ConfigType.LONG,
    "request_percentage": ConfigType.DOUBLE,
    "controller_mutation_rate": ConfigType.DOUBLE,
}
"""QuotaConfig.userAndClientQuotaConfigs"""
IP_KEYS: Mapping[str, ConfigType] = {CONNECTION_RATE: ConfigType.INT}
LARGEST = {ConfigType.INT: float(INT32_MAX), ConfigType.LONG: float(INT64_MAX)}
FRACTION = 1e-6
"""Rounding error accepted in a whole number that went through floating-point arithmetic."""
MAX_CHANGES = 10_000
"""Limit per request (QuorumController.MAX_RECORDS_PER_USER_OP)."""
AT_A_TIME = 25
"""Entities that are changed in one step, which is one transaction."""

Entity = frozenset[tuple[str, str | None]]
"""Pairs of type and name; the name None is the default entity."""
Values = Mapping[str, float | None]
"""Values by key; None removes the key."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """The change that a client asks for on one entity."""

    entity: Mapping[str, str | None]
    ops: Sequence[tuple[str, float | None]]
    """Keys with their values; None removes a key."""


@dataclass(frozen=True, slots=True)
class QuotaFilter:
    """Selects entities; `read_filter` makes one from a request."""

    names: Mapping[str, str | None]
    """Names by type; None is the default entity."""
    types: frozenset[str]
    """Types that an entity must have, with any name."""
    strict: bool
    """Whether an entity must have no other types."""

    def matches(self, entity: Entity) -> bool:
        """Whether an entity matches. The default entity matches like any other name."""
        if self.strict and len(entity) != len(self.names) + len(self.types):
            return False
        return self.names.items() <= entity and self.types <= dict(entity).keys()


class ClientQuotas:
    """All client quotas, in memory and in the metadata file; a change is in force when `alter` returns.

    Args:
        metadata: The metadata file. Its quotas are in force at once; an unknown quota is
            logged, kept and described.
        managers: They enforce the quotas.
        hosts: Knows the addresses of hosts once `ClientQuotas.unknown_hosts` have been looked up.
        names: Limits the names of new entities.
        max_entities: ``client.quotas.max``.
        clock: The time of refusals.
    """

    def __init__(
        self,
        metadata: MetadataStore,
        managers: QuotaManagers,
        hosts: HostNames,
        names: NameLimit,
        max_entities: int,
        clock: Clock,
    ) -> None:
        self.metadata = metadata
        self.store = ClientQuotaStore(metadata)
        self.managers = managers
        self.hosts = hosts
        self.names = names
        self.by_entity: dict[Entity, dict[str, float]] = {}
        self.limit = StateLimit(
            "quota entities", "client.quotas.max", max_entities, self.by_entity.__len__, clock
        )
        for row in self.store.quotas():
            self.by_entity.setdefault(frozenset(row.entity.items()), {})[row.key] = row.value
        for entity, values in self.by_entity.items():
            self.enforce(entity, values)

    def alter(
        self, alterations: Iterable[Alteration], validate_only: bool = False
    ) -> dict[Entity, ApiError | None]:
        """Set and remove quotas; see `alter_in_steps`."""
        return result_of(self.alter_in_steps(list(alterations), validate_only))

    def alter_in_steps(
        self, alterations: Sequence[Alteration], validate_only: bool
    ) -> Generator[None, None, dict[Entity, ApiError | None]]:
        """Set and remove quotas, some at a time; a refused entity keeps its quotas.

        An entity that occurs twice is reported as refused although its first alteration takes effect, as in
        Kafka.

        Returns:
            The refusal of each entity, or None.

        Raises:
            ApiError: POLICY_VIOLATION: too many changes; nothing has changed.
        """
        outcomes: dict[Entity, ApiError | None] = {}
        if sum(len(alteration.ops) for alteration in alterations) > MAX_CHANGES:
            yield from self.check_number(alterations)
        for start in range(0, len(alterations), AT_A_TIME):
            changes = self.accepted(alterations[start : start + AT_A_TIME], outcomes)
            if not validate_only:
                try:
                    self.change(changes)
                except ApiError as error:
                    outcomes.update(dict.fromkeys(changes, error.kept()))
            self.limit.reserved = 0
            yield
        return outcomes

    def check_number(self, alterations: Sequence[Alteration]) -> Generator[None, None, None]:
        """Check the number of changes in a request; a step for some of the entities.

        Raises:
            ApiError: POLICY_VIOLATION.
        """
        seen: dict[Entity, ApiError | None] = {}
        number = 0
        for start in range(0, len(alterations), AT_A_TIME):
            number += sum(map(len, self.accepted(alterations[start : start + AT_A_TIME], seen).values()))
            self.limit.reserved = 0
            if number > MAX_CHANGES:
                raise ApiError(
                    ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
                )
            yield

    def accepted(
        self, alterations: Iterable[Alteration], outcomes: dict[Entity, ApiError | None]
    ) -> dict[Entity, Values]:
        """The legal changes of each entity; adds an outcome for each entity to those of the request."""
        changes: dict[Entity, Values] = {}
        for alteration in alterations:
            entity = frozenset(alteration.entity.items())
            if entity in outcomes or has_duplicates(key for key, _ in alteration.ops):
                outcomes[entity] = ApiError(
                    ErrorCode.INVALID_REQUEST, f"Ignoring duplicate entity {shown(alteration.entity)}"
                )
                continue
            outcomes[entity] = None
            try:
                changes[entity] = self.changed(alteration)
            except ApiError as refusal:
                outcomes[entity] = refusal.kept()
        return changes

    def changed(self, alteration: Alteration) -> Values:
        """The keys that an alteration changes, with their new values.

        Raises:
            ApiError: INVALID_REQUEST, or POLICY_VIOLATION if a name is too long or too many entities have
                quotas.
        """
        valid_keys = self.valid_keys(alteration.entity)
        entity = frozenset(alteration.entity.items())
        sets_any = any(value is not None for _, value in alteration.ops)
        if sets_any and entity not in self.by_entity:
            for kind, name in entity:
                self.names.check(kind, name)
            self.limit.reserve()
        present = self.by_entity.get(entity, {})
        for key, value in alteration.ops:
            if value is not None:
                check_value(valid_keys, key, value)
        return {key: value for key, value in alteration.ops if present.get(key) != value}

    def valid_keys(self, entity: Mapping[str, str | None]) -> Mapping[str, ConfigType]:
        """The keys that an entity can have.

        Raises:
            ApiError: INVALID_REQUEST: no such entity can exist.
        """
        check_names(entity)
        if IP not in entity:
            return CLIENT_KEYS
        if len(entity) > 1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
            )
        host = entity[IP]
        if host is not None and plain_address(host) is None and host not in self.hosts.known:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{host} is not a valid IP or resolvable host.")
        return IP_KEYS

    def unknown_hosts(self, alterations: Iterable[Alteration]) -> list[str]:
        """Host names that must be looked up before `alter`."""
        named = {
            name
            for alteration in alterations
            for name in alteration.entity.values()
            if alteration.entity.keys() == {IP} and name and plain_address(name) is None
        }
        return sorted(named - self.hosts.known.keys())

    def change(self, changes: Mapping[Entity, Values]) -> None:
        """Store all changes, then enforce them. Measured usage is kept."""
        with self.metadata.transaction():
            for entity, values in changes.items():
                self.write(entity, values)
        for entity, values in changes.items():
            present = {**self.by_entity.get(entity, {}), **values}
            self.by_entity[entity] = {key: value for key, value in present.items() if value is not None}
            if not self.by_entity[entity]:
                del self.by_entity[entity]
            self.enforce(entity, values)

    def write(self, entity: Entity, values: Values) -> None:
        """Store the changes of one entity."""
        for key, value in values.items():
            if value is None:
                self.store.delete_quota(dict(entity), key)
            else:
                self.store.put_quota(ClientQuotaRow(dict(entity), key, value))

    def enforce(self, entity: Entity, values: Values) -> None:
        """Enforce the changes of one entity."""
        try:
            known = ClientQuotaEntity.of(dict(entity))
        except KeyError:
            log.warning("ignored the quotas of an unknown entity", extra={"entity": dict(entity)})
        else:
            self.managers.apply(known, values)

    def find(
        self, wanted: QuotaFilter
    ) -> Iterator[tuple[Mapping[str, str | None], Mapping[str, float]] | None]:
        """The matching entities, each with its quotas; None for another entity. Quotas may change between."""
        candidates: Iterable[Entity] = list(self.by_entity)
        if wanted.strict and not wanted.types:  # at most one entity matches
            candidates = {frozenset(wanted.names.items())} & self.by_entity.keys()
        for entity in candidates:
            values = self.by_entity.get(entity)
            if values is None or not wanted.matches(entity):
                yield None
                continue
            names = dict(entity)
            yield {kind: names[kind] for kind in sorted(names, key=place)}, values


def place(entity_type: str) -> int:
    """The position of a type in an entity."""
    return ENTITY_TYPES.index(entity_type) if entity_type in ENTITY_TYPES else len(ENTITY_TYPES)


def shown(entity: Mapping[str, str | None]) -> str:
    """An entity as Java prints it."""
    names = ((kind, entity[kind]) for kind in sorted(entity, key=place))
    entries = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in names)
    return f"ClientQuotaEntity(entries={{{entries}}})"


def has_duplicates(keys: Iterable[str]) -> bool:
    """Whether a key occurs twice."""
    seen = list(keys)
    return len(set(seen)) < len(seen)


def check_names(entity: Mapping[str, str | None]) -> None:
    """Check the types and names of an entity.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if not entity:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")


def check_value(valid_keys: Mapping[str, ConfigType], key: str, value: float) -> None:
    """Check the value of a key.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    kind = valid_keys.get(key)
    if kind is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
    if not math.isfinite(value):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Quota {key} must be a finite number")
    if value <= 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    if kind is ConfigType.DOUBLE:
        return
    if value > LARGEST[kind]:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Proposed value for {key} is too large for {article(kind)}."
        )
    if math.fmod(value, 1.0) > FRACTION:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{key} cannot be a fractional value.")


def article(kind: ConfigType) -> str:
    return "an INT" if kind is ConfigType.INT else "a LONG"
