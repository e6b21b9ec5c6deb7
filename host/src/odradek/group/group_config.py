"""Settings of groups, after Kafka's GroupCoordinatorConfig and GroupConfig."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.bounds.bounded_regex import RegexBounds
from odradek.group.share_config import ShareGroupConfig
from odradek.group.streams_config import StreamsGroupConfig
from odradek.group.target_assignment import ASSIGNORS
from odradek.plugin.config import ConfigError
from odradek.settings.kinds import INT, LONG, Choice, Items, Whole
from odradek.settings.setting import Scope, section, setting
from odradek.wire.limits import INT32_MAX

GROUPS_KEY = "groups.max"
MAX_MEMBER_METADATA_BYTES = 1_048_576
"""Limit for the protocols of a classic member, or the topics of another member. Kafka limits the record of a
whole group, to 1 MiB."""
MAX_ASSIGNMENTS_BYTES = 67_108_864
"""Limit for all members of one classic group together."""
MAX_PENDING_MEMBERS = 10_000
"""Limit of member ids of one group that were assigned but not used yet."""
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""``CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS``: a parked new member, whose client may be gone, is dropped."""
MIGRATION_POLICIES = {name: name for name in ("bidirectional", "upgrade", "downgrade", "disabled")}
"""The values of ConsumerGroupMigrationPolicy.java."""
LIMITED = ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")
"""Times of the consumer protocol that a single group can override, between a minimum and a maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The host's settings for all groups."""

    # fmt: off
    min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms", Whole(INT, 1), 6_000,
        "Shortest session timeout that members of the classic protocol may ask for.", unit="ms",
    )
    max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms", Whole(INT, 1), 1_800_000,
        "Longest session timeout that members of the classic protocol may ask for.", unit="ms",
    )
    initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms", Whole(INT), 3_000,
        "How long a new group waits for more members before its first rebalance; extended while more "
        "members join.", unit="ms",
    )
    max_size: int = setting(
        "group.max.size", Whole(INT, 1), INT32_MAX,
        "Most members of one group of the classic protocol.", unit="members",
    )
    max_groups: int = setting(
        GROUPS_KEY, Whole(INT, 1), 100_000,
        "Most groups, with members or with offsets only, and most groups with a configuration of their own.",
        unit="groups",
    )
    max_members: int = setting(
        "group.members.max", Whole(INT, 1), 100_000,
        "Most members of all groups together, with ids that are given out but not used yet.", unit="members",
    )
    max_member_bytes: int = setting(
        "group.members.max.bytes", Whole(LONG, 1), 268_435_456,
        "Most bytes that all members together take: protocols, topic names and assignments.", unit="bytes",
    )
    max_offsets: int = setting(
        "offsets.max", Whole(INT, 1), 1_000_000,
        "Most offsets of all groups together, committed or in open transactions.", unit="offsets",
    )
    max_offsets_metadata: int = setting(
        "offsets.metadata.max.bytes", Whole(LONG), 268_435_456,
        "Longest metadata of all these offsets together.", unit="characters",
    )
    offset_metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes", Whole(INT), 4_096,
        "Longest metadata text that may be committed with an offset.", unit="characters",
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes", Whole(INT, 1), 10_080,
        "How long offsets are kept after their group became empty; for consumers that assign partitions "
        "themselves, after the commit.", unit="minutes",
    )
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms", Whole(LONG, 1), 600_000,
        "How often the host looks for expired offsets.", unit="ms",
    )

    consumer_session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms", Whole(INT, 1), 45_000,
        "A member of the consumer protocol that sends no heartbeat for this long is removed.",
        unit="ms", scope=Scope.GROUP, own_key="consumer.session.timeout.ms",
    )
    consumer_min_session_timeout_ms: int = setting(
        "group.consumer.min.session.timeout.ms", Whole(INT, 1), 45_000,
        "Smallest value allowed for `group.consumer.session.timeout.ms`.", unit="ms",
    )
    consumer_max_session_timeout_ms: int = setting(
        "group.consumer.max.session.timeout.ms", Whole(INT, 1), 60_000,
        "Largest value allowed for `group.consumer.session.timeout.ms`.", unit="ms",
    )
    consumer_heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms", Whole(INT, 1), 5_000,
        "How often members of the consumer protocol send a heartbeat.", unit="ms",
        scope=Scope.GROUP, own_key="consumer.heartbeat.interval.ms",
    )
    consumer_min_heartbeat_interval_ms: int = setting(
        "group.consumer.min.heartbeat.interval.ms", Whole(INT, 1), 5_000,
        "Smallest value allowed for `group.consumer.heartbeat.interval.ms`.", unit="ms",
    )
    consumer_max_heartbeat_interval_ms: int = setting(
        "group.consumer.max.heartbeat.interval.ms", Whole(INT, 1), 15_000,
        "Largest value allowed for `group.consumer.heartbeat.interval.ms`.", unit="ms",
    )
    consumer_assignment_interval_ms: int = setting(
        "group.consumer.assignment.interval.ms", Whole(INT), 1_000,
        "Shortest time between two assignments of a group of the consumer protocol.", unit="ms",
        scope=Scope.BROKER_AND_GROUP, own_key="consumer.assignment.interval.ms",
    )
    consumer_min_assignment_interval_ms: int = setting(
        "group.consumer.min.assignment.interval.ms", Whole(INT), 0,
        "Smallest value allowed for `group.consumer.assignment.interval.ms`.", unit="ms",
    )
    consumer_max_assignment_interval_ms: int = setting(
        "group.consumer.max.assignment.interval.ms", Whole(INT), 15_000,
        "Largest value allowed for `group.consumer.assignment.interval.ms`.", unit="ms",
    )
    consumer_max_size: int = setting(
        "group.consumer.max.size", Whole(INT, 1), INT32_MAX,
        "Most members of one group of the consumer protocol.", unit="members",
    )
    consumer_assignors: tuple[str, ...] = setting(
        "group.consumer.assignors", Items(tuple(ASSIGNORS), least=1), tuple(ASSIGNORS),
        "Assignors that members may ask for; the first one is the default.",
    )
    consumer_migration_policy: str = setting(
        "group.consumer.migration.policy", Choice(MIGRATION_POLICIES), "bidirectional",
        "How a group with members may change its protocol: `upgrade` to the consumer protocol when a member "
        "that uses it joins, `downgrade` to the classic protocol when the last such member leaves.",
    )
    consumer_regex_refresh_interval_ms: int = setting(
        "group.consumer.regex.refresh.interval.ms", Whole(INT, 10_000), 600_000,
        "How often the regular expressions of a group of the consumer protocol are matched against all "
        "topics again, for changed rights; created and deleted topics are taken in at once.", unit="ms",
    )
    consumer_regex_max_length: int = setting(
        "group.consumer.regex.max.length", Whole(INT, 1), 10_000,
        "Longest regular expression that a member of the consumer protocol may subscribe to; beyond it "
        "INVALID_REGULAR_EXPRESSION.", unit="characters",
    )
    consumer_regex_max_steps: int = setting(
        "group.consumer.regex.max.steps", Whole(INT, 1), 2_000,
        "Most steps of its compiled program; matching takes time in proportion to them and to the names of "
        "all topics.", unit="steps",
    )
    share: ShareGroupConfig = section(ShareGroupConfig)
    streams: StreamsGroupConfig = section(StreamsGroupConfig)
    # fmt: on

    @property
    def regex_bounds(self) -> RegexBounds:
        return RegexBounds(self.consumer_regex_max_length, self.consumer_regex_max_steps)

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            ConfigError: A time is outside its limits, or an assignor is named twice.
        """
        if self.min_session_timeout_ms > self.max_session_timeout_ms:
            raise ConfigError(
                "group.min.session.timeout.ms",
                f"expected at most group.max.session.timeout.ms ({self.max_session_timeout_ms}), found "
                f"{self.min_session_timeout_ms}",
            )
        for name in LIMITED:
            least_ms, most_ms = getattr(self, f"consumer_min_{name}"), getattr(self, f"consumer_max_{name}")
            value_ms = getattr(self, f"consumer_{name}")
            key = name.replace("_", ".")
            if not least_ms <= value_ms <= most_ms:
                raise ConfigError(
                    f"group.consumer.{key}",
                    f"expected from group.consumer.min.{key} ({least_ms}) to group.consumer.max.{key} "
                    f"({most_ms}), found {value_ms}",
                )
        if len(set(self.consumer_assignors)) < len(self.consumer_assignors):
            found = ",".join(self.consumer_assignors)
            raise ConfigError("group.consumer.assignors", f"expected each assignor once, found {found!r}")
