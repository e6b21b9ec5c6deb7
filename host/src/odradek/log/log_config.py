"""Configuration of one topic's logs.

After org.apache.kafka.storage.internals.log.LogConfig, TopicConfig and ServerTopicConfigSynonyms (Kafka 4.3):
names, defaults, bounds, and the broker's key for the default of each topic key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import BadElement, Choice, Flag, Items, Kind, Number, Special, Whole
from odradek.settings.reading import by_key, changed
from odradek.settings.setting import Scope, setting
from odradek.wire.compression import Codec
from odradek.wire.config_resource import ConfigType
from odradek.wire.limits import INT32_MAX, INT64_MAX
from odradek.wire.record_batch import TimestampType

_INT, _LONG = ConfigType.INT, ConfigType.LONG
_MINUTE_MS: Final = 60 * 1000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_TIMESTAMP_TYPES: Final = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}
_COMPRESSION_TYPES: Final = {
    "uncompressed": Codec.NONE,
    "zstd": Codec.ZSTD,
    "lz4": Codec.LZ4,
    "snappy": Codec.SNAPPY,
    "gzip": Codec.GZIP,
    "producer": None,
}


def _gzip_level(text: str) -> int:
    value = Whole(_INT, -(2**31)).parse(text)
    if value != -1 and not 1 <= value <= 9:
        raise BadElement(value, "Value must be between 1 and 9 or equal to -1")
    return value


def _read_gzip_level(table: PluginConfig, key: str) -> int:
    value = table.integer(key, -1, -1, 9)
    if value == 0:
        raise table.error(key, "expected -1 or a whole number from 1 to 9, found 0")
    return value


_GZIP_LEVEL: Final = Special(type=_INT, shape="integer, -1 to 9", read=_read_gzip_level, parse=_gzip_level)
_CODEC: Final = Choice(_COMPRESSION_TYPES)
_POLICIES: Final = Items(("compact", "delete"), collect=frozenset)
"""An empty set means that the log is never cleaned up (KIP-1132)."""


DEAD_LETTERS_KEY: Final = "errors.deadletterqueue.group.enable"
DECOMPRESSED_UNBOUNDED = INT32_MAX - 8
"""The default of Kafka 4.4: the longest array that every JVM has."""


def _topic(key: str, broker_key: str, kind: Kind, default: Any, documentation: str, **more: Any) -> Any:
    """Declare a key of topics and the broker's key for its default."""
    return setting(broker_key, kind, default, documentation, scope=Scope.TOPIC, own_key=key, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The configuration of a `PartitionLog`, of its compaction and its retention.

    The constructor takes any value, so that tests can have segments of a few kB; ``parse`` applies Kafka's
    bounds.
    """

    # fmt: off
    segment_bytes: int = _topic(
        "segment.bytes", "log.segment.bytes", Whole(_INT, 1 << 20), 1 << 30,
        "A segment is closed before it grows beyond this size.", unit="bytes",
    )
    segment_ms: int = _topic(
        "segment.ms", "log.roll.ms", Whole(_LONG, 1), 7 * _DAY_MS,
        "A segment is closed when it reaches this age.",
        unit="ms", fallbacks=("log.roll.hours",), unset="`log.roll.hours`",
    )
    segment_jitter_ms: int = _topic(
        "segment.jitter.ms", "log.roll.jitter.ms", Whole(_LONG), 0,
        "Largest random reduction of the age at which a segment is closed; accepted and shown, but not "
        "used.", unit="ms", fallbacks=("log.roll.jitter.hours",), unset="`log.roll.jitter.hours`", used=False,
    )
    segment_index_bytes: int = _topic(
        "segment.index.bytes", "log.index.size.max.bytes", Whole(_INT, 4), 10 << 20,
        "A segment is closed when its index reaches this size.", unit="bytes",
    )
    index_interval_bytes: int = _topic(
        "index.interval.bytes", "log.index.interval.bytes", Whole(_INT), 4096,
        "Bytes of log between two index entries.", unit="bytes",
    )
    max_message_bytes: int = _topic(
        "max.message.bytes", "message.max.bytes", Whole(_INT), (1 << 20) + 12,
        "Largest record batch, after compression.", unit="bytes",
    )
    max_decompressed_message_bytes: int = _topic(
        "max.decompressed.message.bytes", "max.decompressed.message.bytes", Whole(_INT, 1),
        DECOMPRESSED_UNBOUNDED,
        "What a compressed batch may open to; `produce.decompressed.max.bytes` holds as well.", unit="bytes",
    )
    message_timestamp_type: TimestampType = _topic(
        "message.timestamp.type", "log.message.timestamp.type", Choice(_TIMESTAMP_TYPES),
        TimestampType.CREATE_TIME,
        "Timestamp of a record: the producer's (`CreateTime`), or the broker's at the append "
        "(`LogAppendTime`).",
    )
    message_timestamp_before_max_ms: int = _topic(
        "message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms", Whole(_LONG), INT64_MAX,
        "How far a record's timestamp may be behind the broker's clock.", unit="ms",
    )
    message_timestamp_after_max_ms: int = _topic(
        "message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms", Whole(_LONG), _HOUR_MS,
        "How far a record's timestamp may be ahead of the broker's clock.", unit="ms",
    )
    compression_type: Codec | None = _topic(
        "compression.type", "compression.type", _CODEC, None,
        "Codec of stored batches; `producer` keeps each batch as it was sent.",
    )
    """None keeps the codec of the producer."""
    compression_gzip_level: int = _topic(
        "compression.gzip.level", "compression.gzip.level", _GZIP_LEVEL, -1,
        "Level of gzip, or -1 for gzip's default; accepted and shown, but not used.", used=False,
    )
    compression_lz4_level: int = _topic(
        "compression.lz4.level", "compression.lz4.level", Whole(_INT, 1, 17), 9,
        "Level of LZ4; accepted and shown, but not used.", used=False,
    )
    compression_zstd_level: int = _topic(
        "compression.zstd.level", "compression.zstd.level", Whole(_INT, -131072, 22), 3,
        "Level of Zstandard; accepted and shown, but not used.", used=False,
    )
    cleanup_policy: frozenset[str] = _topic(
        "cleanup.policy", "log.cleanup.policy", _POLICIES, frozenset({"delete"}),
        "How old segments are cleaned up: `delete`, `compact` or both; an empty list keeps everything.",
    )
    retention_ms: int = _topic(
        "retention.ms", "log.retention.ms", Whole(_LONG, -1), 7 * _DAY_MS,
        "A segment is deleted when its newest record reaches this age; -1 is no limit.",
        unit="ms", fallbacks=("log.retention.minutes", "log.retention.hours"),
        unset="`log.retention.minutes` or `log.retention.hours`",
    )
    retention_bytes: int = _topic(
        "retention.bytes", "log.retention.bytes", Whole(_LONG, -1), -1,
        "The oldest segments of a partition are deleted as long as the remaining ones have this size; -1 is "
        "no limit.", unit="bytes",
    )
    delete_retention_ms: int = _topic(
        "delete.retention.ms", "log.cleaner.delete.retention.ms", Whole(_LONG), _DAY_MS,
        "How long a compacted topic keeps the tombstones of deleted keys.", unit="ms",
    )
    min_compaction_lag_ms: int = _topic(
        "min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms", Whole(_LONG), 0,
        "A record younger than this is not compacted.", unit="ms",
    )
    max_compaction_lag_ms: int = _topic(
        "max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms", Whole(_LONG, 1), INT64_MAX,
        "A log is due for compaction when a record has waited this long to be compacted.", unit="ms",
    )
    min_cleanable_dirty_ratio: float = _topic(
        "min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio", Number(0, 1), 0.5,
        "A log is due for compaction when this share of it has never been compacted.",
    )
    file_delete_delay_ms: int = _topic(
        "file.delete.delay.ms", "log.segment.delete.delay.ms", Whole(_LONG), 60_000,
        "How long the files of a deleted segment stay on disk.", unit="ms",
    )
    flush_messages: int = _topic(
        "flush.messages", "log.flush.interval.messages", Whole(_LONG, 1), INT64_MAX,
        "A log is flushed to disk after this many records.", unit="records",
    )
    flush_ms: int = _topic(
        "flush.ms", "log.flush.interval.ms", Whole(_LONG), INT64_MAX,
        "A log is flushed to disk this long after an append.",
        unit="ms", fallbacks=("log.flush.scheduler.interval.ms",), unset="`log.flush.scheduler.interval.ms`",
    )
    min_insync_replicas: int = _topic(
        "min.insync.replicas", "min.insync.replicas", Whole(_INT, 1), 1,
        "Replicas that must have a record before `acks=all` is answered; accepted and shown, but not used.",
        used=False,
    )
    preallocate: bool = _topic(
        "preallocate", "log.preallocate", Flag(), False,
        "Whether the disk space of a new segment is allocated at once; accepted and shown, but not used.",
        used=False,
    )
    unclean_leader_election_enable: bool = _topic(
        "unclean.leader.election.enable", "unclean.leader.election.enable", Flag(), False,
        "Whether a replica that is not in sync may become leader; accepted and shown, but not used.",
        used=False,
    )
    takes_dead_letters: bool = _topic(
        DEAD_LETTERS_KEY, DEAD_LETTERS_KEY, Flag(), False,
        "Whether groups may use the topic as their dead-letter topic (KIP-1191).", in_file=False,
    )
    # fmt: on
    # Every append asks for these values, which follow from those above.
    is_compacted: bool = field(init=False, compare=False)
    flushes: bool = field(init=False, compare=False)
    """Whether the host flushes appends to disk; otherwise the operating system decides when to write."""
    max_segment_ms: int = field(init=False, compare=False)
    """The age at which a segment is closed, early enough for the records of a compacted topic."""

    def __post_init__(self) -> None:
        derive = partial(object.__setattr__, self)
        is_compacted = "compact" in self.cleanup_policy
        lag_ms = self.max_compaction_lag_ms
        bounded = is_compacted and lag_ms > 0
        derive("is_compacted", is_compacted)
        derive("flushes", self.flush_ms != INT64_MAX or self.flush_messages != INT64_MAX)
        derive("max_segment_ms", min(lag_ms, self.segment_ms) if bounded else self.segment_ms)

    def check(self) -> None:
        """Check that the values of a configuration file are consistent.

        Raises:
            ConfigError: A record would be due for compaction before it may be compacted.
        """
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                "log.cleaner.min.compaction.lag.ms",
                f"expected at most log.cleaner.max.compaction.lag.ms ({self.max_compaction_lag_ms}), found "
                f"{self.min_compaction_lag_ms}",
            )

    @classmethod
    def parse(cls, properties: Mapping[str, str], defaults: LogConfig | None = None) -> LogConfig:
        """Return the configuration of a topic.

        Args:
            properties: Texts by key of the topic.
            defaults: Values of the other keys; None for Kafka's defaults.

        Raises:
            ConfigError: An unknown key, or a value out of its bounds; in Kafka's words.
        """
        for key in properties:
            if key not in LOG_CONFIG_KEYS:
                raise ConfigError(key, f"Unknown topic config name: {key}")
        return (defaults or cls()).changed(properties, own=True)

    def changed(self, texts: Mapping[str, str], own: bool = False) -> LogConfig:
        """Return a copy with some values changed.

        Args:
            texts: Values by key of the broker, or by key of a topic if ``own``; all keys are known.
            own: Whether the keys are those of a topic.

        Raises:
            ConfigError: A value is out of its bounds; in Kafka's words.
        """
        config = changed(self, texts, own)
        least_ms, most_ms = config.min_compaction_lag_ms, config.max_compaction_lag_ms
        if least_ms > most_ms:
            raise ConfigError(
                "min.compaction.lag.ms",
                f"conflict topic config setting min.compaction.lag.ms ({least_ms}) > "
                f"max.compaction.lag.ms ({most_ms})",
            )
        return config


LOG_CONFIG_KEYS: Final = frozenset(by_key(LogConfig, own=True))
"""The keys that ``LogConfig.parse`` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongerUnits:
    """Keys in other units that apply if the key in milliseconds is not set."""

    # fmt: off
    retention_minutes: int | None = setting(
        "log.retention.minutes", Whole(_INT, -1), None,
        "Retention time; used if `log.retention.ms` is not set. -1 is no limit.",
        unit="minutes", unset="unset",
    )
    retention_hours: int = setting(
        "log.retention.hours", Whole(_INT, -1), 168,
        "Retention time; used if neither `log.retention.ms` nor `log.retention.minutes` is set. -1 is no "
        "limit.", unit="hours",
    )
    roll_hours: int = setting(
        "log.roll.hours", Whole(_INT, 1), 168,
        "A segment is closed when it reaches this age; used if `log.roll.ms` is not set.", unit="hours",
    )
    roll_jitter_hours: int = setting(
        "log.roll.jitter.hours", Whole(_INT), 0,
        "Stands for `log.roll.jitter.ms` if that is not set; accepted and shown, but not used.", unit="hours",
    )
    flush_scheduler_interval_ms: int = setting(
        "log.flush.scheduler.interval.ms", Whole(_LONG), INT64_MAX,
        "A log is flushed to disk this long after an append; used if `log.flush.interval.ms` is not set.",
        unit="ms",
    )
    # fmt: on

    def applied(self, config: LogConfig, given: frozenset[str]) -> LogConfig:
        """Return the defaults of topics, with these keys in effect if those in milliseconds are not set.

        Args:
            config: The defaults as read from the keys in milliseconds.
            given: The keys of the configuration file.
        """
        retention, unit_ms = self.retention_hours, _HOUR_MS
        if self.retention_minutes is not None:
            retention, unit_ms = self.retention_minutes, _MINUTE_MS
        stand_ins = {
            "retention_ms": retention * unit_ms if retention >= 0 else -1,
            "segment_ms": self.roll_hours * _HOUR_MS,
            "segment_jitter_ms": self.roll_jitter_hours * _HOUR_MS,
            "flush_ms": self.flush_scheduler_interval_ms,
        }
        known = by_key(LogConfig)
        for key in given & known.keys():
            stand_ins.pop(known[key][0], None)
        return replace(config, **stand_ins)  # type: ignore[arg-type]  # fields of numbers only
