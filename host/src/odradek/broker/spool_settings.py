"""Settings of the spool: how accepted pushes are stored, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from odradek.broker.topics import MAX_PARTITIONS, fault_of
from odradek.plugin.config import PluginConfig
from odradek.settings.kinds import INT, LONG, Choice, Special, Whole
from odradek.settings.setting import setting
from odradek.wire.config_resource import ConfigType

DEAD_LETTER_SUFFIX = "_dead_letter"


class Durability(StrEnum):
    """What a client may rely on when its push is answered (``telemetry.durability``)."""

    MEMORY = "memory"
    """The push was given to receivers and forwarders; nothing is written."""
    LOG = "log"
    """The push is in the log: it survives the end of the process."""
    FSYNC = "fsync"
    """The push is on the disk: it survives the end of the machine."""


class TopicProduce(StrEnum):
    """What happens to records that a client produces to the telemetry topic (``telemetry.topic.produce``)."""

    CHECKED = "checked"
    """Those of the documented format are appended; a batch with others is refused with INVALID_RECORD."""
    REFUSED = "refused"
    """All are refused with INVALID_TOPIC_EXCEPTION, as Kafka refuses writes to its internal topics."""


def read_topic_name(table: PluginConfig, key: str) -> str:
    """Return the name of a topic that has room for the suffix of the dead letters.

    Raises:
        ConfigError: No topic can have the name.
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
        "What an answered push survives: `log` the end of the process, `fsync` the end of the machine, "
        "`memory` neither, as it is only with receivers and in the queues of forwarders.",
        page="telemetry-topic.md",
    )
    topic_name: str = setting(
        "telemetry.topic.name", Special(type=ConfigType.STRING, shape="text", read=read_topic_name),
        "__client_telemetry", "The topic of accepted pushes; it is created at the start.",
    )
    partitions: int = setting(
        "telemetry.topic.partitions", Whole(INT, 1, MAX_PARTITIONS), 1,
        "Fewest partitions of the telemetry topic; adding some later moves client instances to others.",
        unit="partitions",
    )
    produce: TopicProduce = setting(
        "telemetry.topic.produce", Choice({each.value: each for each in TopicProduce}), TopicProduce.CHECKED,
        "Records that clients produce to the telemetry topic: `checked` refuses those that are not of the "
        "topic's format, `refused` all.", page="telemetry-topic.md",
    )
    linger_ms: int = setting(
        "telemetry.linger.ms", Whole(INT, 0, 10_000), 20,
        "How long a push waits for others, to be written and answered with them; 0 gathers the pushes of one "
        "turn of the event loop.", unit="ms",
    )
    buffer_max_bytes: int = setting(
        "telemetry.buffer.max.bytes", Whole(LONG, 1), 64 << 20,
        "Pushes that wait to be written; more are refused with THROTTLING_QUOTA_EXCEEDED.", unit="bytes",
    )
    log_max_bytes: int = setting(
        "telemetry.log.max.bytes", Whole(LONG, -1), -1,
        "Pushes are refused with THROTTLING_QUOTA_EXCEEDED while the telemetry topic has this size; -1 is no "
        "limit.",
        unit="bytes",
    )
    retention_ms: int | None = setting(
        "telemetry.retention.ms", Whole(LONG, -1), None,
        "Retention time of the telemetry topic; unset leaves it to the topic or to `log.retention.ms`.",
        unit="ms", unset="unset",
    )
    retention_bytes: int | None = setting(
        "telemetry.retention.bytes", Whole(LONG, -1), None,
        "Size of each partition of the telemetry topic; the oldest segments beyond it are deleted. Unset "
        "leaves it to the topic or to `log.retention.bytes`.", unit="bytes", unset="unset",
    )
    # fmt: on

    @property
    def dead_letter_topic(self) -> str:
        """The topic of records that no destination takes."""
        return self.topic_name + DEAD_LETTER_SUFFIX
