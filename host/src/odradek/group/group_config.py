"""What groups are allowed, under Kafka's names (GroupCoordinatorConfig.java)."""

from __future__ import annotations

from dataclasses import dataclass

INT32_MAX = 2**31 - 1
MAX_MEMBER_METADATA_BYTES = 1_048_576
"""Of one member: of a classic group its protocols, else its topics. Kafka's limit is that of a record, 1 MiB,
for the whole group."""
MAX_ASSIGNMENTS_BYTES = 67_108_864
"""Of all members of one classic group together."""
MAX_PENDING_MEMBERS = 10_000
"""Member ids of one group that were given out and not used yet."""
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""``CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS``: a parked new member, whose client may be gone, is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """One host's settings for all groups."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = INT32_MAX
    """Members of one classic group."""
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000

    consumer_session_timeout_ms: int = 45_000
    consumer_session_timeout_limits_ms: tuple[int, int] = (45_000, 60_000)
    """``group.consumer.min.session.timeout.ms`` and ``max``: within them a group may have its own."""
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_heartbeat_interval_limits_ms: tuple[int, int] = (5_000, 15_000)
    consumer_max_size: int = INT32_MAX
    """Members of one group of the ``consumer`` protocol."""
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first is used where no member asks for one."""
    consumer_assignment_interval_ms: int = 1_000
    """Between two targets of one group: what happens in between is answered with one of them."""
    consumer_assignment_interval_limits_ms: tuple[int, int] = (0, 15_000)
    consumer_migration_policy: str = "bidirectional"

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000
