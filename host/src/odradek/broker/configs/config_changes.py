"""Changes of configuration: the valid changes of a request are stored, some resources at a time.

After Kafka's ConfigAdminManager (form) and ConfigurationControlManager (content). A refused resource does not
affect the others of its request; a resource is changed completely or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from odradek.broker.broker import Broker
from odradek.broker.configs.broker_resource import check_name
from odradek.broker.configs.config_resources import ConfigResource, resource_of
from odradek.broker.configs.config_rights import ConfigRights
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.settings.kinds import elements
from odradek.settings.state_limit import StateLimit
from odradek.telemetry.client_metrics_configs import MATCH, check_in_steps
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigOperation, ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT16_MAX
from odradek.wire.messages.alter_configs import AlterConfigsResourceResponse


class KeyChange(NamedTuple):
    """A change of one key."""

    key: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """A change of one resource."""

    type: int
    name: str
    keys: Sequence[KeyChange]
    replace: bool = False
    """True removes all keys that are not named (AlterConfigs)."""


WITHOUT_TEXT = frozenset({ResourceType.BROKER, ResourceType.BROKER_LOGGER})
AT_A_TIME = 50
"""Resources that are changed in one step, which is one transaction."""
CHARS_AT_A_TIME = 2_048
"""Characters of their values, if it is more than one."""


def results(
    changes: Sequence[ResourceChange], validate_only: bool, context: RequestContext, broker: Broker
) -> Generator[AlterConfigsResourceResponse | Step, Any, None]:
    """Apply the changes of a request; yield the result of each."""
    rights = ConfigRights(broker.authorization, context, AclOperation.ALTER_CONFIGS)
    refusals = yield from alter(changes, validate_only, rights, broker)
    for change, refusal in zip(changes, refusals, strict=True):
        code, message = (refusal.code, refusal.message) if refusal else (ErrorCode.NONE, None)
        yield AlterConfigsResourceResponse(
            error_code=code, error_message=message, resource_type=change.type, resource_name=change.name
        )


def alter(
    changes: Sequence[ResourceChange], validate_only: bool, rights: ConfigRights, broker: Broker
) -> Generator[Step, Any, list[ApiError | None]]:
    """Apply the changes of a request, in steps.

    Args:
        changes: In the order of the request.
        validate_only: Check everything, change nothing.
        rights: The caller's rights to alter configurations.
        broker: The broker to change.

    Returns:
        For each change the error, or None if it was accepted.
    """
    times = Counter((change.type, change.name) for change in changes)
    over_budget: Mapping[str, ApiError] = {}
    if broker.estimates is not None:
        over_budget = yield from broker.estimates.refusals(subscriptions(changes, times, rights, broker))
    refusals: list[ApiError | None] = []
    for some in pieces(changes):
        for change in some:
            yield from patterns_checked(change, rights, broker)
        try:
            refusals += alter_some(some, times, validate_only, rights, broker, over_budget)
        except ApiError as error:
            refusals += [error.kept()] * len(some)
        yield None
    return refusals


def subscriptions(
    changes: Sequence[ResourceChange],
    times: Mapping[tuple[int, str], int],
    rights: ConfigRights,
    broker: Broker,
) -> dict[str, dict[str, str]]:
    """The subscriptions that a request changes, and that the caller may change: their properties after it."""
    found: dict[str, dict[str, str]] = {}
    for change in changes:
        if change.type != ResourceType.CLIENT_METRICS or broker.followed_cluster is not None:
            continue
        try:
            check_form(change, times[(change.type, change.name)])
            check_right(change, rights)
            before = broker.metadata.resource(change.type, change.name)
            after = changed(change, before, resource_of(change.type, ""), broker)
        except ApiError:
            continue  # it is refused when its turn comes
        if after != before:
            found[change.name] = after
    return found


def patterns_checked(
    change: ResourceChange, rights: ConfigRights, broker: Broker
) -> Generator[None, None, None]:
    """Check the patterns of a subscription, each in a step: `alter_some` finds them checked."""
    if change.type == ResourceType.CLIENT_METRICS and rights.refusal(change.type, change.name) is None:
        for key in change.keys:
            if key.key == MATCH and key.value is not None:
                yield from check_in_steps(key.value, broker.telemetry.config.match_bounds)


def pieces(changes: Sequence[ResourceChange]) -> Iterator[Sequence[ResourceChange]]:
    """Divide the changes of a request into those of single steps, in the same order.

    A new ``match`` has a step of its own: other requests may have displaced the verdicts about many patterns.
    """
    piece: list[ResourceChange] = []
    chars = 0
    for change in changes:
        more = sum(CHARS_AT_A_TIME if key.key == MATCH else len(key.value or "") for key in change.keys)
        if piece and (len(piece) == AT_A_TIME or chars + more > CHARS_AT_A_TIME):
            yield piece
            piece, chars = [], 0
        piece.append(change)
        chars += more
    if piece:
        yield piece


def release(limits: Sequence[StateLimit]) -> None:
    """Forget the places that were reserved for changes."""
    for each in limits:
        each.reserved = 0


def alter_some(
    changes: Sequence[ResourceChange],
    times: Mapping[tuple[int, str], int],
    validate_only: bool,
    rights: ConfigRights,
    broker: Broker,
    over_budget: Mapping[str, ApiError],
) -> list[ApiError | None]:
    """Apply some changes in one transaction.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR: none of them is applied.
    """
    accepted: list[tuple[ConfigResource, str, dict[str, str]]] = []
    refusals: list[ApiError | None] = []
    reserved: list[StateLimit] = []
    try:
        with broker.metadata.transaction():
            for change in changes:
                try:
                    check_form(change, times[(change.type, change.name)])
                    check_right(change, rights)
                    resource = resource_of(change.type, f"Unknown resource type {change.type}")
                    before = broker.metadata.resource(change.type, change.name)
                    after = changed(change, before, resource, broker)
                    check_lengths(before, after)
                    limit = resource.limit(broker) if after and not before else None
                    if limit is not None:
                        broker.names.check("resource name", change.name)
                        limit.check()
                    resource.validate(change.name, before, after, broker)
                    if change.type == ResourceType.CLIENT_METRICS and change.name in over_budget:
                        raise over_budget[change.name]
                    if limit is not None:
                        limit.reserve()
                        reserved.append(limit)
                except ApiError as refusal:
                    refusals.append(refusal.kept())
                    continue
                refusals.append(None)
                if after != before and not validate_only:
                    broker.metadata.put_resource(change.type, change.name, after)
                    accepted.append((resource, change.name, after))
        for resource, name, properties in accepted:
            resource.apply(name, properties, broker)
    finally:
        broker.telemetry.subscriptions.release()
        release(reserved)
    return refusals


def check_form(change: ResourceChange, times: int) -> None:
    """Check a change independently of its resource type, in Kafka's order.

    Raises:
        ApiError: INVALID_REQUEST, with Kafka's message.
    """
    if times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if len({key.key for key in change.keys}) < len(change.keys):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [key.key for key in change.keys if key.value is None and key.operation != ConfigOperation.DELETE]
    if nulls:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def check_right(change: ResourceChange, rights: ConfigRights) -> None:
    """Check that the caller may change the configuration of a resource.

    Raises:
        ApiError: An authorization error; without a text for brokers, as in Kafka.
    """
    refusal = rights.refusal(change.type, change.name)
    if refusal is not None and change.type in WITHOUT_TEXT:
        refusal.message = None
    if refusal is not None:
        raise refusal


def check_lengths(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Check the length of each new value.

    Raises:
        ApiError: INVALID_CONFIG, with Kafka's message.
    """
    for key, value in after.items():
        if len(value) > INT16_MAX and value != before.get(key):
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{INT16_MAX} bytes.",
            )


def changed(
    change: ResourceChange, before: dict[str, str], resource: ConfigResource, broker: Broker
) -> dict[str, str]:
    """The keys after a change.

    Raises:
        ApiError: The name is of another node, or an operation does not fit its key.
    """
    if change.type == ResourceType.BROKER:
        check_name(change.name, broker, "Node", "")
    after = {} if change.replace else dict(before)
    for key in change.keys:
        value = new_value(key, before.get(key.key), resource, broker)
        if value is None:
            after.pop(key.key, None)
        else:
            after[key.key] = value
    return after


def new_value(change: KeyChange, before: str | None, resource: ConfigResource, broker: Broker) -> str | None:
    """A key's value after a change; None to remove the key."""
    if change.operation == ConfigOperation.SET:
        return change.value
    if change.operation == ConfigOperation.DELETE:
        return None
    if change.operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka answers so because of a NullPointerException
    operation = ConfigOperation(change.operation)
    declaration = resource.listed(change.key, broker)
    if declaration is None or declaration.kind.type is not ConfigType.LIST:
        upper = operation.name
        words = resource.not_a_list.format(key=change.key, upper=upper, lower=upper.lower())
        raise ApiError(ErrorCode.INVALID_CONFIG, words)
    start = declaration.default_text if before is None else before
    present, wanted = elements(start or ""), elements(change.value or "")
    if operation is ConfigOperation.APPEND:
        return ",".join(present + [item for item in wanted if item not in present])
    return ",".join(item for item in present if item not in wanted)
