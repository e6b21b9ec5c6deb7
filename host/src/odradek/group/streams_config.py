"""Settings of streams groups, after Kafka's GroupCoordinatorConfig and GroupConfig (KIP-1071)."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.plugin.config import ConfigError
from odradek.settings.kinds import INT, Items, Whole
from odradek.settings.setting import Scope, setting
from odradek.wire.limits import INT32_MAX

ACCEPTABLE_RECOVERY_LAG = 10_000
"""What Kafka tells members; it matters only for tasks that warm up, of which there are none yet."""
TASK_OFFSET_INTERVAL_MS = 60_000
"""How often members report how far their state is."""

LIMITED = ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms", "num_standby_replicas")
"""Values that a single group can override, up to a maximum; times also have a minimum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupConfig:
    """The host's settings for streams groups."""

    # fmt: off
    session_timeout_ms: int = setting(
        "group.streams.session.timeout.ms", Whole(INT, 1), 45_000,
        "A member of a streams group that sends no heartbeat for this long is removed.",
        unit="ms", scope=Scope.GROUP, own_key="streams.session.timeout.ms",
    )
    min_session_timeout_ms: int = setting(
        "group.streams.min.session.timeout.ms", Whole(INT, 1), 45_000,
        "Smallest value allowed for `group.streams.session.timeout.ms`.", unit="ms",
    )
    max_session_timeout_ms: int = setting(
        "group.streams.max.session.timeout.ms", Whole(INT, 1), 60_000,
        "Largest value allowed for `group.streams.session.timeout.ms`.", unit="ms",
    )
    heartbeat_interval_ms: int = setting(
        "group.streams.heartbeat.interval.ms", Whole(INT, 1), 5_000,
        "How often members of streams groups send a heartbeat.", unit="ms",
        scope=Scope.GROUP, own_key="streams.heartbeat.interval.ms",
    )
    min_heartbeat_interval_ms: int = setting(
        "group.streams.min.heartbeat.interval.ms", Whole(INT, 1), 5_000,
        "Smallest value allowed for `group.streams.heartbeat.interval.ms`.", unit="ms",
    )
    max_heartbeat_interval_ms: int = setting(
        "group.streams.max.heartbeat.interval.ms", Whole(INT, 1), 15_000,
        "Largest value allowed for `group.streams.heartbeat.interval.ms`.", unit="ms",
    )
    max_size: int = setting(
        "group.streams.max.size", Whole(INT, 1), INT32_MAX,
        "Most members of one streams group.", unit="members",
    )
    num_standby_replicas: int = setting(
        "group.streams.num.standby.replicas", Whole(INT), 0,
        "How many copies of its state each task with state has on other processes.", unit="tasks",
        scope=Scope.GROUP, own_key="streams.num.standby.replicas",
    )
    max_standby_replicas: int = setting(
        "group.streams.max.standby.replicas", Whole(INT), 2,
        "Largest value allowed for `group.streams.num.standby.replicas`.", unit="tasks",
    )
    initial_rebalance_delay_ms: int = setting(
        "group.streams.initial.rebalance.delay.ms", Whole(INT), 3_000,
        "How long an empty streams group waits for more members after the first has joined, before it "
        "assigns tasks.", unit="ms", scope=Scope.GROUP, own_key="streams.initial.rebalance.delay.ms",
    )
    assignment_interval_ms: int = setting(
        "group.streams.assignment.interval.ms", Whole(INT), 1_000,
        "Shortest time between two assignments of a streams group.", unit="ms",
        scope=Scope.BROKER_AND_GROUP, own_key="streams.assignment.interval.ms",
    )
    min_assignment_interval_ms: int = setting(
        "group.streams.min.assignment.interval.ms", Whole(INT), 0,
        "Smallest value allowed for `group.streams.assignment.interval.ms`.", unit="ms",
    )
    max_assignment_interval_ms: int = setting(
        "group.streams.max.assignment.interval.ms", Whole(INT), 15_000,
        "Largest value allowed for `group.streams.assignment.interval.ms`.", unit="ms",
    )
    assignors: tuple[str, ...] = setting(
        "group.streams.assignors", Items(("sticky",), least=1), ("sticky",),
        "Assignors of streams groups; the first one is the default.",
    )
    # fmt: on

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            ConfigError: A value is outside its limits.
        """
        for name in LIMITED:
            limited = name.removeprefix("num_")
            least, most = getattr(self, f"min_{limited}", 0), getattr(self, f"max_{limited}")
            value, key = getattr(self, name), limited.replace("_", ".")
            if not least <= value <= most:
                raise ConfigError(
                    f"group.streams.{name.replace('_', '.')}",
                    f"expected at least {least} and at most group.streams.max.{key} ({most}), found {value}",
                )
