"""The ``group.*`` and ``offsets.*`` keys of the configuration."""

from __future__ import annotations

from odradek.group.group_config import GroupConfig
from odradek.plugin.config import PluginConfig

INT32_MAX = 2**31 - 1


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
    )
