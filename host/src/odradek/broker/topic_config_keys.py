"""The keys of a topic's configuration as DescribeConfigs shows them.

Names, types and the broker keys that stand behind them are those of TopicConfig.java, LogConfig.java and
ServerTopicConfigSynonyms.java (Kafka 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass

from odradek.broker.config_key import ConfigKey
from odradek.broker.throttled_replicas import FOLLOWER_REPLICAS, LEADER_REPLICAS
from odradek.log.log_config import LogConfig
from odradek.wire.compression import Codec
from odradek.wire.config_resource import ConfigType
from odradek.wire.record_batch import TimestampType

INT, LONG, DOUBLE = ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE
LIST, STRING, BOOLEAN = ConfigType.LIST, ConfigType.STRING, ConfigType.BOOLEAN

TIMESTAMP_TYPES = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}
CODECS = {codec: codec.name.lower() for codec in Codec} | {Codec.NONE: "uncompressed"}


@dataclass(frozen=True, slots=True)
class TopicConfigKey:
    """A topic's key and the broker's key for its default."""

    key: ConfigKey
    broker_key: str


def value_text(config: LogConfig, key: str) -> str:
    """What a configuration has for a key, as Kafka prints it."""
    value = getattr(config, key.replace(".", "_"))
    if value is None:
        return "producer"  # compression.type is the only key that can be None
    if isinstance(value, TimestampType):
        return TIMESTAMP_TYPES[value]
    if isinstance(value, Codec):
        return CODECS[value]
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def topic_key(name: str, kind: ConfigType, documentation: str, broker_key: str = "") -> TopicConfigKey:
    """A key whose broker key is ``log.<name>`` where nothing else is said."""
    default = value_text(LogConfig(), name)
    key = ConfigKey(name=name, type=kind, default=default, documentation=documentation)
    return TopicConfigKey(key, broker_key or f"log.{name}")


TOPIC_CONFIG_KEYS = (
    topic_key("cleanup.policy", LIST, "What happens to old segments: delete, compact, or both"),
    topic_key(
        "compression.gzip.level", INT, "Level of gzip, -1 for its own default", "compression.gzip.level"
    ),
    topic_key("compression.lz4.level", INT, "Level of LZ4", "compression.lz4.level"),
    topic_key(
        "compression.type",
        STRING,
        "Codec of stored batches: uncompressed, gzip, snappy, lz4, zstd, or the producer's own",
        "compression.type",
    ),
    topic_key("compression.zstd.level", INT, "Level of Zstandard", "compression.zstd.level"),
    topic_key(
        "delete.retention.ms",
        LONG,
        "How long a compacted topic keeps the marks of deleted keys",
        "log.cleaner.delete.retention.ms",
    ),
    topic_key(
        "file.delete.delay.ms",
        LONG,
        "How long a deleted segment's files stay on the disk",
        "log.segment.delete.delay.ms",
    ),
    topic_key(
        "flush.messages",
        LONG,
        "After how many records the log is forced to disk",
        "log.flush.interval.messages",
    ),
    topic_key("flush.ms", LONG, "After how long the log is forced to disk", "log.flush.interval.ms"),
    topic_key("index.interval.bytes", INT, "Bytes of log between two entries of an index"),
    topic_key(
        "max.compaction.lag.ms",
        LONG,
        "How long a record may go uncompacted",
        "log.cleaner.max.compaction.lag.ms",
    ),
    topic_key("max.message.bytes", INT, "The largest record batch, compressed", "message.max.bytes"),
    topic_key(
        "message.timestamp.after.max.ms", LONG, "How far a timestamp may lie ahead of the broker's clock"
    ),
    topic_key(
        "message.timestamp.before.max.ms", LONG, "How far a timestamp may lie behind the broker's clock"
    ),
    topic_key("message.timestamp.type", STRING, "Whose time records bear: CreateTime or LogAppendTime"),
    topic_key(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        "Which share of the log has to be uncompacted before it is compacted",
        "log.cleaner.min.cleanable.ratio",
    ),
    topic_key(
        "min.compaction.lag.ms",
        LONG,
        "How long a record stays uncompacted at least",
        "log.cleaner.min.compaction.lag.ms",
    ),
    topic_key(
        "min.insync.replicas", INT, "How many replicas must have a record for acks=all", "min.insync.replicas"
    ),
    topic_key("preallocate", BOOLEAN, "Whether a new segment takes its space on the disk at once"),
    topic_key("retention.bytes", LONG, "How large a partition may grow, -1 without bound"),
    topic_key("retention.ms", LONG, "How long records are kept, -1 forever"),
    topic_key("segment.bytes", INT, "How large a segment grows"),
    topic_key("segment.index.bytes", INT, "How large an index grows", "log.index.size.max.bytes"),
    topic_key(
        "segment.jitter.ms", LONG, "How much earlier a segment may end, at random", "log.roll.jitter.ms"
    ),
    topic_key("segment.ms", LONG, "After how long a segment ends", "log.roll.ms"),
    topic_key(
        "unclean.leader.election.enable",
        BOOLEAN,
        "Whether a replica that is behind may become leader",
        "unclean.leader.election.enable",
    ),
)
FALLBACKS = {
    "log.retention.ms": ("log.retention.hours", "168"),
    "log.roll.ms": ("log.roll.hours", "168"),
    "log.roll.jitter.ms": ("log.roll.jitter.hours", "0"),
    "log.flush.interval.ms": ("log.flush.scheduler.interval.ms", "9223372036854775807"),
}
"""Broker keys that are null unless set, and the key with its default that stands behind each. Kafka shows
that one only where the first is set.
"""
THROTTLED_KEYS = tuple(
    ConfigKey(
        name=name,
        type=LIST,
        default="",
        documentation=f"Which replicas are held to {rate}: * for all, or partition:broker pairs",
    )
    for name, rate in (
        (FOLLOWER_REPLICAS, "follower.replication.throttled.rate"),
        (LEADER_REPLICAS, "leader.replication.throttled.rate"),
    )
)
"""Keys of a topic without a counterpart at the broker."""
TYPES = {key.name: key.type for key in (*(row.key for row in TOPIC_CONFIG_KEYS), *THROTTLED_KEYS)}
