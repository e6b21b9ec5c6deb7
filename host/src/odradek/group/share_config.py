"""Settings of share groups (KIP-932), after Kafka's ShareGroupConfig and GroupConfig."""

from __future__ import annotations

import re
from dataclasses import dataclass

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import INT, TEXT, Choice, Flag, Items, Special, Whole
from odradek.settings.setting import Scope, setting
from odradek.wire.config_resource import ConfigType

SIMPLE = "simple"
"""The only assignor."""
DURATION = re.compile(
    r"P(?:(?P<days>[+-]?[0-9]+)D)?"
    r"(?P<time>T(?:(?P<hours>[+-]?[0-9]+)H)?(?:(?P<minutes>[+-]?[0-9]+)M)?"
    r"(?:(?P<seconds>[+-]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
"""``java.time.Duration.parse``, without a sign before the P."""
DEAD_LETTER_TOPIC_KEY = "errors.deadletterqueue.topic.name"
LIMITED = (
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "record_lock_duration_ms",
    "delivery_count_limit",
    "partition_max_record_locks",
    "assignment_interval_ms",
)
"""Values that a single group can override, between a minimum and a maximum."""


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Where a group begins to read a partition."""

    where: str
    """``earliest``, ``latest`` or ``by_duration``."""
    back_ms: int = 0
    """How far back, by duration."""
    text: str = ""
    """As it was set."""


LATEST = OffsetReset("latest", text="latest")


def offset_reset(text: str) -> OffsetReset:
    """Parse ``share.auto.offset.reset``; after AutoOffsetResetStrategy.java.

    Raises:
        ValueError: It is none; in Kafka's words.
    """
    text = text.strip()
    if text in ("latest", "earliest"):
        return OffsetReset(text, text=text)
    head, colon, duration = text.partition(":")
    back_ms = milliseconds(duration) if head == "by_duration" and colon else None
    if back_ms is None or back_ms < 0:
        raise ValueError(
            f"Invalid value `{text}` for configuration share.auto.offset.reset. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS.>'."
        )
    return OffsetReset("by_duration", back_ms, text)


def milliseconds(duration: str) -> int | None:
    """A duration of ISO 8601 in milliseconds; None if it is none."""
    found = DURATION.fullmatch(duration)
    if found is None or found["time"] in ("T", "t") or not any(map(found.group, ("days", "time"))):
        return None
    seconds = sum(
        int(found[name] or 0) * size
        for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))
    )
    fraction_ms = int((found["fraction"] or "").ljust(3, "0")[:3])
    return seconds * 1_000 + (-fraction_ms if (found["seconds"] or "").startswith("-") else fraction_ms)


def read_reset(table: PluginConfig, key: str) -> OffsetReset:
    """Read a policy; no file has one."""
    return offset_reset(table.text(key) or LATEST.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupConfig:
    """The host's settings for share groups, or those of one group."""

    # fmt: off
    session_timeout_ms: int = setting(
        "group.share.session.timeout.ms", Whole(INT, 1), 45_000,
        "A member of a share group that sends no heartbeat for this long is removed.", unit="ms",
        scope=Scope.GROUP, own_key="share.session.timeout.ms",
    )
    min_session_timeout_ms: int = setting(
        "group.share.min.session.timeout.ms", Whole(INT, 1), 45_000,
        "Smallest value allowed for `group.share.session.timeout.ms`.", unit="ms",
    )
    max_session_timeout_ms: int = setting(
        "group.share.max.session.timeout.ms", Whole(INT, 1), 60_000,
        "Largest value allowed for `group.share.session.timeout.ms`.", unit="ms",
    )
    heartbeat_interval_ms: int = setting(
        "group.share.heartbeat.interval.ms", Whole(INT, 1), 5_000,
        "How often members of share groups send a heartbeat.", unit="ms",
        scope=Scope.GROUP, own_key="share.heartbeat.interval.ms",
    )
    min_heartbeat_interval_ms: int = setting(
        "group.share.min.heartbeat.interval.ms", Whole(INT, 1), 5_000,
        "Smallest value allowed for `group.share.heartbeat.interval.ms`.", unit="ms",
    )
    max_heartbeat_interval_ms: int = setting(
        "group.share.max.heartbeat.interval.ms", Whole(INT, 1), 15_000,
        "Largest value allowed for `group.share.heartbeat.interval.ms`.", unit="ms",
    )
    assignment_interval_ms: int = setting(
        "group.share.assignment.interval.ms", Whole(INT), 1_000,
        "Shortest time between two assignments of a share group.", unit="ms",
        scope=Scope.BROKER_AND_GROUP, own_key="share.assignment.interval.ms",
    )
    min_assignment_interval_ms: int = setting(
        "group.share.min.assignment.interval.ms", Whole(INT), 0,
        "Smallest value allowed for `group.share.assignment.interval.ms`.", unit="ms",
    )
    max_assignment_interval_ms: int = setting(
        "group.share.max.assignment.interval.ms", Whole(INT), 15_000,
        "Largest value allowed for `group.share.assignment.interval.ms`.", unit="ms",
    )
    record_lock_duration_ms: int = setting(
        "group.share.record.lock.duration.ms", Whole(INT, 1_000), 30_000,
        "How long a member of a share group holds a record before others may get it.", unit="ms",
        scope=Scope.GROUP, own_key="share.record.lock.duration.ms",
    )
    min_record_lock_duration_ms: int = setting(
        "group.share.min.record.lock.duration.ms", Whole(INT, 1_000), 15_000,
        "Smallest value allowed for `group.share.record.lock.duration.ms`.", unit="ms",
    )
    max_record_lock_duration_ms: int = setting(
        "group.share.max.record.lock.duration.ms", Whole(INT, 1_000), 60_000,
        "Largest value allowed for `group.share.record.lock.duration.ms`.", unit="ms",
    )
    delivery_count_limit: int = setting(
        "group.share.delivery.count.limit", Whole(INT, 2), 5,
        "How often a share group delivers a record at most.", unit="deliveries",
        scope=Scope.GROUP, own_key="share.delivery.count.limit",
    )
    min_delivery_count_limit: int = setting(
        "group.share.min.delivery.count.limit", Whole(INT, 2), 2,
        "Smallest value allowed for `group.share.delivery.count.limit`.", unit="deliveries",
    )
    max_delivery_count_limit: int = setting(
        "group.share.max.delivery.count.limit", Whole(INT, 2), 10,
        "Largest value allowed for `group.share.delivery.count.limit`.", unit="deliveries",
    )
    partition_max_record_locks: int = setting(
        "group.share.partition.max.record.locks", Whole(INT, 100), 2_000,
        "Most records of a partition that are on their way to the members of a share group.", unit="records",
        scope=Scope.GROUP, own_key="share.partition.max.record.locks",
    )
    min_partition_max_record_locks: int = setting(
        "group.share.min.partition.max.record.locks", Whole(INT, 100), 100,
        "Smallest value allowed for `group.share.partition.max.record.locks`.", unit="records",
    )
    max_partition_max_record_locks: int = setting(
        "group.share.max.partition.max.record.locks", Whole(INT, 100), 4_000,
        "Largest value allowed for `group.share.partition.max.record.locks`.", unit="records",
    )
    max_size: int = setting(
        "group.share.max.size", Whole(INT, 1, 1_000), 200,
        "Most members of one share group.", unit="members",
    )
    max_share_sessions: int = setting(
        "group.share.max.share.sessions", Whole(INT, 1), 2_000,
        "Most share sessions of all members of share groups.", unit="sessions",
    )
    assignors: tuple[str, ...] = setting(
        "group.share.assignors", Items((SIMPLE,), least=1, most=1), (SIMPLE,),
        "Assignors of share groups; there is one.",
    )
    auto_offset_reset: OffsetReset = setting(
        "share.auto.offset.reset",
        Special(
            type=ConfigType.STRING, shape="`latest`, `earliest` or `by_duration:` and a duration of ISO 8601",
            read=read_reset, parse=offset_reset, text=lambda value: value.text,
        ),
        LATEST, "Where a share group begins to read a partition.",
        scope=Scope.GROUP, own_key="share.auto.offset.reset", in_file=False,
    )
    isolation_level: str = setting(
        "share.isolation.level",
        Choice({name: name for name in ("read_committed", "read_uncommitted")}), "read_uncommitted",
        "Whether a share group reads records of open and aborted transactions.",
        scope=Scope.GROUP, own_key="share.isolation.level", in_file=False,
    )
    renew_acknowledge_enable: bool = setting(
        "share.renew.acknowledge.enable", Flag(), True,
        "Whether a member of a share group may hold a record for another lock duration.",
        scope=Scope.GROUP, own_key="share.renew.acknowledge.enable", in_file=False,
    )
    dead_letter_topic: str = setting(
        DEAD_LETTER_TOPIC_KEY, TEXT, "",
        "Topic for the records that a share group gives up: those that a member rejects, and those that were "
        "delivered too often. Empty: they are in no topic.",
        scope=Scope.GROUP, own_key=DEAD_LETTER_TOPIC_KEY, in_file=False,
    )
    copies_dead_letters: bool = setting(
        "errors.deadletterqueue.copy.record.enable", Flag(), False,
        "Whether the records in that topic have the keys and values of those that were given up.",
        scope=Scope.GROUP, own_key="errors.deadletterqueue.copy.record.enable", in_file=False,
    )
    makes_dead_letter_topics: bool = setting(
        "errors.deadletterqueue.auto.create.topics.enable", Flag(), False,
        "Whether the host makes the dead-letter topic of a share group that does not exist.",
        scope=Scope.BROKER,
    )
    dead_letter_prefix: str = setting(
        "errors.deadletterqueue.topic.name.prefix", TEXT, "dlq.",
        "With what the names of dead-letter topics begin: a share group cannot write to any other topic.",
        scope=Scope.BROKER,
    )
    # fmt: on

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            ConfigError: A value is outside its limits.
        """
        for name in LIMITED:
            least, most, value = (getattr(self, each) for each in (f"min_{name}", f"max_{name}", name))
            key = name.replace("_", ".")
            if not least <= value <= most:
                raise ConfigError(
                    f"group.share.{key}",
                    f"expected from group.share.min.{key} ({least}) to group.share.max.{key} ({most}), found "
                    f"{value}",
                )
