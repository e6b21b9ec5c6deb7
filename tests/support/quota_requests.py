"""Client quotas over the wire, with entities and filters in a short form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from odradek.broker.broker import Broker
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from support.broker import BrokerClient, make_broker

Names = Mapping[str, str | None]
Entity = frozenset[tuple[str, str | None]]
Outcome = tuple[int, str | None]
"""Error code and message."""
EXACT, DEFAULT, ANY = 0, 1, 2
LOCALHOST = ("127.0.0.1", "::1")


def look_up(host: str) -> Sequence[str]:
    """The addresses of known host names."""
    return LOCALHOST if host == "localhost" else ()


def entity(user: str | None = "", client_id: str | None = "", ip: str | None = "") -> dict[str, str | None]:
    """An entity with the given parts; None is the default."""
    parts = {"user": user, "client-id": client_id, "ip": ip}
    return {kind: name for kind, name in parts.items() if name != ""}


def entry(names: Names, *ops: tuple[str, float | None]) -> RequestEntryData:
    """One entity with its keys; None removes a key."""
    return RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
        ops=[OpData(key=key, value=value or 0, remove=value is None) for key, value in ops],
    )


def component(kind: str, match: str | int | None) -> ComponentData:
    """A name, None for the default, or `ANY`."""
    if match == ANY:
        return ComponentData(entity_type=kind, match_type=ANY, match=None)
    return ComponentData(
        entity_type=kind,
        match_type=DEFAULT if match is None else EXACT,
        match=match,  # type: ignore[arg-type]
    )


def outcomes(response: AlterClientQuotasResponse) -> dict[Entity, Outcome]:
    """The result for each entity."""
    found = {
        frozenset((part.entity_type, part.entity_name) for part in row.entity): (
            row.error_code,
            row.error_message,
        )
        for row in response.entries
    }
    assert len(found) == len(response.entries)
    return found


@dataclass(slots=True)
class QuotaAdmin:
    """Alters and describes the client quotas of a broker in memory, which knows the host localhost."""

    broker: Broker = field(default_factory=make_broker)
    version: int = 1

    def __post_init__(self) -> None:
        self.broker.connection_quotas.hosts.lookup = lambda host, found: found(look_up(host))

    def send(self, *entries: RequestEntryData, validate_only: bool = False) -> dict[Entity, Outcome]:
        """Send a request; return the result for each entity."""
        request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
        return outcomes(BrokerClient(self.broker).send(request, self.version))

    def alter(self, names: Names, /, **ops: float | None) -> Outcome:
        """Alter one entity; return its result."""
        ((found, outcome),) = self.send(entry(names, *ops.items())).items()
        assert found == frozenset(names.items())
        return outcome

    def validate(self, names: Names, /, **ops: float | None) -> Outcome:
        """Validate the alteration of one entity; return its result."""
        (outcome,) = self.send(entry(names, *ops.items()), validate_only=True).values()
        return outcome

    def answer(self, *components: ComponentData, strict: bool = False) -> DescribeClientQuotasResponse:
        """The answer to a filter."""
        request = DescribeClientQuotasRequest(components=list(components), strict=strict)
        response = BrokerClient(self.broker).send(request, self.version)
        assert isinstance(response, DescribeClientQuotasResponse)
        return response

    def describe(self, strict: bool = False, **matches: str | int | None) -> dict[Entity, dict[str, float]]:
        """The quotas of the matching entities; ``client_id`` is the type client-id."""
        components = [component(kind.replace("_", "-"), match) for kind, match in matches.items()]
        response = self.answer(*components, strict=strict)
        assert response.error_code == 0
        return {
            frozenset((part.entity_type, part.entity_name) for part in row.entity): {
                value.key: value.value for value in row.values
            }
            for row in response.entries or ()
        }

    def quotas_of(self, names: Names) -> dict[str, float]:
        """The quotas of one entity; empty if it has none."""
        matches = {kind.replace("-", "_"): name for kind, name in names.items()}
        return self.describe(strict=True, **matches).get(frozenset(names.items()), {})
