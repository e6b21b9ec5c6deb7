"""What an operator sets on one group of the consumer protocol; after GroupConfig.java (KIP-848)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from odradek.group.group_config import INT32_MAX, GroupConfig
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
SESSION_TIMEOUT_MS = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL_MS = "consumer.heartbeat.interval.ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """One key, in milliseconds."""

    name: str
    """The key of the host that it takes the place of is the same with ``group.`` in front."""
    field: str
    """That key in `GroupConfig`."""
    limits: str
    """Its limits in `GroupConfig`."""
    default_ms: int
    """Kafka's."""
    floor_ms: int
    """Less makes no sense, whatever the limits."""
    documentation: str

    def parsed_ms(self, text: str) -> int:
        """A value, within the floor; not yet within the limits.

        Raises:
            ApiError: INVALID_CONFIG, with Kafka's message.
        """
        trimmed = text.strip()
        value_ms = int(trimmed) if INTEGER.fullmatch(trimmed) else None
        if value_ms is None or not -INT32_MAX - 1 <= value_ms <= INT32_MAX:
            raise refused(f"Invalid value {text} for configuration {self.name}: Not a number of type INT")
        if value_ms < self.floor_ms:
            raise refused(
                f"Invalid value {value_ms} for configuration {self.name}: "
                f"Value must be at least {self.floor_ms}"
            )
        return value_ms

    def limits_ms(self, config: GroupConfig) -> tuple[int, int]:
        """The least and the most that the host allows."""
        least_ms, most_ms = getattr(config, self.limits)
        return least_ms, most_ms

    def value_ms(self, config: GroupConfig) -> int:
        """The value in force in a configuration."""
        value_ms: int = getattr(config, self.field)
        return value_ms


GROUP_KEYS = {
    key.name: key
    for key in (
        GroupKey(
            name=SESSION_TIMEOUT_MS,
            field="consumer_session_timeout_ms",
            limits="consumer_session_timeout_limits_ms",
            default_ms=45_000,
            floor_ms=1,
            documentation="After how long a silent member of this group is out of it",
        ),
        GroupKey(
            name=HEARTBEAT_INTERVAL_MS,
            field="consumer_heartbeat_interval_ms",
            limits="consumer_heartbeat_interval_limits_ms",
            default_ms=5_000,
            floor_ms=1,
            documentation="How often members of this group have to call",
        ),
        GroupKey(
            name="consumer.assignment.interval.ms",
            field="consumer_assignment_interval_ms",
            limits="consumer_assignment_interval_limits_ms",
            default_ms=1_000,
            floor_ms=0,
            documentation="The least time between two assignments of this group",
        ),
    )
}
"""By name."""


def validate(properties: Mapping[str, str], config: GroupConfig) -> None:
    """Whether a group may have these properties, found in Kafka's order.

    Args:
        properties: All that are set on the group.
        config: The host's.

    Raises:
        ApiError: INVALID_CONFIG, with Kafka's message.
    """
    for name in properties:
        if name not in GROUP_KEYS:
            raise refused(f"Unknown group config name: {name}")
    values_ms = {
        name: key.parsed_ms(properties[name]) for name, key in GROUP_KEYS.items() if name in properties
    }
    for name, value_ms in values_ms.items():
        least_ms, most_ms = GROUP_KEYS[name].limits_ms(config)
        what = name.removeprefix("consumer.")
        if value_ms < least_ms:
            raise refused(f"{name} must be greater than or equal to group.consumer.min.{what}")
        if value_ms > most_ms:
            raise refused(f"{name} must be less than or equal to group.consumer.max.{what}")
    effective = in_force(properties, config)
    if effective.consumer_session_timeout_ms <= effective.consumer_heartbeat_interval_ms:
        raise refused(f"{SESSION_TIMEOUT_MS} must be greater than {HEARTBEAT_INTERVAL_MS}")


def in_force(properties: Mapping[str, str], config: GroupConfig) -> GroupConfig:
    """What a group goes by.

    Args:
        properties: Properties that were valid once; the limits may have moved since then: they win.
        config: The host's.
    """
    values_ms = {}
    for name, key in GROUP_KEYS.items():
        if name in properties:
            least_ms, most_ms = key.limits_ms(config)
            values_ms[key.field] = min(max(key.parsed_ms(properties[name]), least_ms), most_ms)
    return replace(config, **values_ms)  # type: ignore[arg-type]  # fields of numbers only


def refused(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, message)
