"""The ``group.*`` and ``offsets.*`` keys of the configuration."""

from __future__ import annotations

from typing import NamedTuple

from odradek.group.group_config import GroupConfig
from odradek.group.target_assignment import ASSIGNORS
from odradek.plugin.config import PluginConfig

INT32_MAX = 2**31 - 1
MIGRATION_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
"""ConsumerGroupMigrationPolicy.java."""


def read_group_config(top: PluginConfig) -> GroupConfig:
    """What groups are allowed.

    Raises:
        ConfigError: A value is wrong, or the shortest session is longer than the longest.
    """
    shortest_ms = top.integer("group.min.session.timeout.ms", 6_000, 1, INT32_MAX)
    longest_ms = top.integer("group.max.session.timeout.ms", 1_800_000, 1, INT32_MAX)
    if shortest_ms > longest_ms:
        raise top.error(
            "group.min.session.timeout.ms",
            f"expected at most group.max.session.timeout.ms ({longest_ms}), found {shortest_ms}",
        )
    session = within(top, "session.timeout.ms", 45_000, (1, 45_000, 60_000))
    heartbeat = within(top, "heartbeat.interval.ms", 5_000, (1, 5_000, 15_000))
    assignment = within(top, "assignment.interval.ms", 1_000, (0, 0, 15_000))
    return GroupConfig(
        min_session_timeout_ms=shortest_ms,
        max_session_timeout_ms=longest_ms,
        initial_rebalance_delay_ms=top.integer("group.initial.rebalance.delay.ms", 3_000, 0, INT32_MAX),
        max_size=top.integer("group.max.size", INT32_MAX, 1, INT32_MAX),
        offset_metadata_max_bytes=top.integer("offset.metadata.max.bytes", 4_096, 0, INT32_MAX),
        offsets_retention_minutes=top.integer("offsets.retention.minutes", 10_080, 1, INT32_MAX),
        offsets_retention_check_interval_ms=top.integer(
            "offsets.retention.check.interval.ms", 600_000, 1, INT32_MAX
        ),
        consumer_session_timeout_ms=session.value_ms,
        consumer_session_timeout_limits_ms=session.limits_ms,
        consumer_heartbeat_interval_ms=heartbeat.value_ms,
        consumer_heartbeat_interval_limits_ms=heartbeat.limits_ms,
        consumer_assignment_interval_ms=assignment.value_ms,
        consumer_assignment_interval_limits_ms=assignment.limits_ms,
        consumer_max_size=top.integer("group.consumer.max.size", INT32_MAX, 1, INT32_MAX),
        consumer_assignors=read_assignors(top),
        consumer_migration_policy=top.choice(
            "group.consumer.migration.policy", "bidirectional", MIGRATION_POLICIES
        ),
    )


class Time(NamedTuple):
    """A time of the consumer protocol, and what a group may have instead."""

    value_ms: int
    limits_ms: tuple[int, int]


def within(top: PluginConfig, key: str, default_ms: int, limits_ms: tuple[int, int, int]) -> Time:
    """A time of the consumer protocol, within the limits that the operator sets for it.

    Args:
        top: The configuration.
        key: The key without ``group.consumer.``.
        default_ms: The time if it is not set.
        limits_ms: Less than the first makes no sense; the others are the limits if they are not set.

    Raises:
        ConfigError: The time is not within the limits.
    """
    floor_ms, least_ms, most_ms = limits_ms
    least_ms = top.integer(f"group.consumer.min.{key}", least_ms, floor_ms, INT32_MAX)
    most_ms = top.integer(f"group.consumer.max.{key}", most_ms, floor_ms, INT32_MAX)
    value_ms = top.integer(f"group.consumer.{key}", default_ms, floor_ms, INT32_MAX)
    if not least_ms <= value_ms <= most_ms:
        raise top.error(
            f"group.consumer.{key}",
            f"expected from group.consumer.min.{key} ({least_ms}) to group.consumer.max.{key} ({most_ms}), "
            f"found {value_ms}",
        )
    return Time(value_ms, (least_ms, most_ms))


def read_assignors(top: PluginConfig) -> tuple[str, ...]:
    """``group.consumer.assignors``: the first is the default one."""
    names = top.texts("group.consumer.assignors", list(ASSIGNORS))
    if not names or len(set(names)) < len(names) or not set(names) <= ASSIGNORS.keys():
        raise top.error(
            "group.consumer.assignors", f"expected one or more of {', '.join(ASSIGNORS)}, found {names!r}"
        )
    return tuple(names)
