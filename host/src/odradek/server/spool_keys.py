"""The keys of the spool: where accepted pushes are kept, and for how long."""

from __future__ import annotations

from odradek.broker.spool_settings import DEAD_LETTER_SUFFIX, Durability, SpoolSettings
from odradek.broker.topics import MAX_PARTITIONS, fault_of
from odradek.plugin.config import PluginConfig


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
