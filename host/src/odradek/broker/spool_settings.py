"""Settings of the spool: how accepted pushes are stored, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from odradek.broker.topics import MAX_PARTITIONS, fault_of
from odradek.plugin.config import PluginConfig
from odradek.settings.kinds import INT, LONG, Choice, Flag, Special, Whole
from odradek.settings.setting import setting
from odradek.wire.config_resource import ConfigType

DEAD_LETTER_SUFFIX = "_dead_letter"


class Durability(StrEnum):
    """The durability of a push when it is acknowledged (``telemetry.durability``)."""

    MEMORY = "memory"
    """The push was passed to receivers and forwarders; nothing is written."""
    LOG = "log"
    """The push is in the log: it survives the end of the process."""
    FSYNC = "fsync"
    """The push is on disk: it survives the end of the machine."""
    KAFKA = "kafka"
    """The push is acknowledged by a Kafka cluster: it survives the end of the machine and of a broker."""


class TopicProduce(StrEnum):
    """How records produced to the telemetry topic by clients are treated (``telemetry.topic.produce``)."""

    CHECKED = "checked"
    """Those of the documented format are appended; a batch with others is refused with INVALID_RECORD."""
    REFUSED = "refused"
    """All are refused with INVALID_TOPIC_EXCEPTION, as Kafka refuses writes to its internal topics."""


def read_topic_name(table: PluginConfig, key: str) -> str:
    """Return the name of a topic that stays valid with the suffix of the dead letter topic.

    Raises:
        ConfigError: The name is not valid.
    """
    name = table.text(key) or ""
    fault = fault_of(name + DEAD_LETTER_SUFFIX) if name else "the empty string is not allowed"
    if fault is not None:
        raise table.error(key, f"expected the name of a topic, found {name!r}: {fault}")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolSettings:
    """How accepted pushes are stored."""

    # fmt: off
    durability: Durability = setting(
        "telemetry.durability", Choice({each.value: each for each in Durability}), Durability.LOG,
        "What an acknowledged push survives: `log` the end of the process, `fsync` the end of the machine; "
        "`memory` neither; `kafka` also the loss of a broker, because the topic is one of a Kafka cluster.",
        page="../howto/write-to-a-cluster.md",
    )
    topic_name: str = setting(
        "telemetry.topic.name", Special(type=ConfigType.STRING, shape="text", read=read_topic_name),
        "__client_telemetry",
        "Topic that stores accepted pushes, of this host or of a cluster (`telemetry.durability`); it is "
        "created at the start.",
    )
    partitions: int = setting(
        "telemetry.topic.partitions", Whole(INT, 1, MAX_PARTITIONS), 1,
        "Smallest number of partitions of the telemetry topic; adding partitions later moves client "
        "instances to other partitions.", unit="partitions",
    )
    internal: bool = setting(
        "telemetry.topic.internal", Flag(), False,
        "Whether clients are told that the telemetry topic and the topic of its dead letters are internal: "
        "consumers that subscribe to a pattern then leave them out, and Spark's Kafka source reads nothing.",
        page="telemetry-topic.md",
    )
    produce: TopicProduce = setting(
        "telemetry.topic.produce", Choice({each.value: each for each in TopicProduce}), TopicProduce.CHECKED,
        "Records that clients produce to the telemetry topic: `checked` refuses those that are not of the "
        "topic's format, `refused` all.", page="telemetry-topic.md",
    )
    linger_ms: int = setting(
        "telemetry.linger.ms", Whole(INT, 0, 10_000), 20,
        "How long a push waits so that it can be written and answered together with others; 0 combines the "
        "pushes of one turn of the event loop.", unit="ms",
    )
    buffer_max_bytes: int = setting(
        "telemetry.buffer.max.bytes", Whole(LONG, 1), 64 << 20,
        "Size of all pushes that may wait to be written; further ones are refused with "
        "THROTTLING_QUOTA_EXCEEDED.", unit="bytes",
    )
    buffer_max_records: int = setting(
        "telemetry.buffer.max.records", Whole(INT, 1), 10_000,
        "The same for their number. Used only with `telemetry.durability=kafka`.", unit="pushes",
    )
    acknowledge_timeout_ms: int = setting(
        "telemetry.acknowledge.timeout.ms", Whole(INT, 100, 300_000), 10_000,
        "A push that the cluster has not acknowledged after this time is refused with "
        "THROTTLING_QUOTA_EXCEEDED: its client pushes again. Used only with `telemetry.durability=kafka`.",
        unit="ms", page="../howto/write-to-a-cluster.md",
    )
    log_max_bytes: int = setting(
        "telemetry.log.max.bytes", Whole(LONG, -1), -1,
        "Pushes are refused with THROTTLING_QUOTA_EXCEEDED while the telemetry topic is at least this "
        "large; -1 is no limit.", unit="bytes",
    )
    retention_ms: int | None = setting(
        "telemetry.retention.ms", Whole(LONG, -1), None,
        "Retention time of the telemetry topic. If unset, the topic's own value or `log.retention.ms` "
        "applies.", unit="ms", unset="unset",
    )
    retention_bytes: int | None = setting(
        "telemetry.retention.bytes", Whole(LONG, -1), None,
        "Size limit of each partition of the telemetry topic; the oldest segments beyond it are deleted. If "
        "unset, the topic's own value or `log.retention.bytes` applies.", unit="bytes", unset="unset",
    )
    # fmt: on

    @property
    def dead_letter_topic(self) -> str:
        """The topic of records that no destination accepts."""
        return self.topic_name + DEAD_LETTER_SUFFIX
