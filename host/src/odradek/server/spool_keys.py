"""The keys of the spool: where accepted pushes are kept, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from odradek.broker.topics import MAX_PARTITIONS, fault_of
from odradek.plugin.config import PluginConfig

INT32_MAX = 2**31 - 1
DEAD_LETTER_SUFFIX = "_dead_letter"


class Durability(StrEnum):
    """What a client may rely on when its push is answered (``telemetry.durability``)."""

    MEMORY = "memory"
    """Receivers and forwarders have been given it; nothing is written."""
    LOG = "log"
    """It is in the log: the end of the process does not lose it."""
    FSYNC = "fsync"
    """It is on the disk: the end of the machine does not lose it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolSettings:
    """How accepted pushes are kept."""

    durability: Durability = Durability.LOG
    topic_name: str = "__client_telemetry"
    partitions: int = 1
    linger_ms: int = 20
    """How long a push may wait for others, to be written and answered with them."""
    buffer_max_bytes: int = 64 << 20
    """Of pushes that wait for the log; more are refused."""
    log_max_bytes: int = -1
    """Of the topic on the disk; pushes are refused while it has as many. -1 is no limit."""
    retention_ms: int | None = None
    """None leaves it to ``log.retention.ms``, or to what was set on the topic."""
    retention_bytes: int | None = None

    @property
    def dead_letter_topic(self) -> str:
        """Where records go that no far side takes."""
        return self.topic_name + DEAD_LETTER_SUFFIX


def read_spool(top: PluginConfig) -> SpoolSettings:
    """``telemetry.*``, as far as it is about keeping pushes."""
    default = SpoolSettings()
    name = top.text("telemetry.topic.name", default.topic_name) or ""
    fault = fault_of(name + DEAD_LETTER_SUFFIX) if name else "the empty string is not allowed"
    if fault is not None:
        raise top.error("telemetry.topic.name", f"expected the name of a topic, found {name!r}: {fault}")
    return SpoolSettings(
        durability=Durability(top.choice("telemetry.durability", default.durability, list(Durability))),
        topic_name=name,
        partitions=top.integer("telemetry.topic.partitions", default.partitions, 1, MAX_PARTITIONS),
        linger_ms=top.integer("telemetry.linger.ms", default.linger_ms, 0, 10_000),
        buffer_max_bytes=top.integer("telemetry.buffer.max.bytes", default.buffer_max_bytes, 1),
        log_max_bytes=top.integer("telemetry.log.max.bytes", default.log_max_bytes, -1),
        retention_ms=optional(top, "telemetry.retention.ms"),
        retention_bytes=optional(top, "telemetry.retention.bytes"),
    )


def optional(top: PluginConfig, key: str) -> int | None:
    """A number from -1 on, None where it is not set."""
    return None if top.value(key) is None else top.integer(key, -1, -1)
