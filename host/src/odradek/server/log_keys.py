"""The keys of the logs: where they are, how topics are kept by default, how often somebody looks after them.

Names and defaults are those of ServerLogConfigs.java, CleanerConfig.java and ServerTopicConfigSynonyms.java
(Kafka 4.3).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from odradek.log.cleaner import DEDUPE_BUFFER_BYTES
from odradek.log.log_config import LogConfig
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.server.upkeep.log_upkeep import UpkeepSettings

LOG_DEFAULTS: Final = {
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.cleanup.policy": "cleanup.policy",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "log.index.interval.bytes": "index.interval.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.retention.bytes": "retention.bytes",
    "log.retention.ms": "retention.ms",
    "log.roll.ms": "segment.ms",
    "log.segment.bytes": "segment.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "message.max.bytes": "max.message.bytes",
}
"""The broker's key for the default of each topic key."""
_MINUTE_MS: Final = 60_000
LONGER_UNITS: Final = {
    "log.retention.minutes": ("log.retention.ms", _MINUTE_MS),
    "log.retention.hours": ("log.retention.ms", 60 * _MINUTE_MS),
    "log.roll.hours": ("log.roll.ms", 60 * _MINUTE_MS),
}
"""Keys that stand in for one in milliseconds where that is not set, the finer one first."""


def read_log_dirs(top: PluginConfig) -> tuple[Path, ...]:
    """``log.dirs``; none for the folder in the data directory."""
    return tuple(Path(text) for text in top.texts("log.dirs"))


def read_log_defaults(top: PluginConfig) -> LogConfig:
    """The defaults of topic configurations."""
    texts = {key: _text(value) for key in LOG_DEFAULTS if (value := top.value(key)) is not None}
    for key, (finer, unit_ms) in LONGER_UNITS.items():
        value = top.value(key)
        if value is not None and finer not in texts:
            texts[finer] = _in_ms(top, key, _text(value), unit_ms)
    defaults = LogConfig()
    for key, text in texts.items():
        try:
            defaults = LogConfig.parse({LOG_DEFAULTS[key]: text}, defaults)
        except ConfigError as error:
            raise top.error(key, error.problem) from None
    return defaults


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _in_ms(top: PluginConfig, key: str, text: str, unit_ms: int) -> str:
    """-1 is no limit, in every unit."""
    try:
        value = int(text)
    except ValueError:
        raise top.error(key, f"expected a whole number, found {text!r}") from None
    return str(value * unit_ms if value >= 0 else value)


def read_upkeep(top: PluginConfig) -> UpkeepSettings:
    """How often retention and compaction are looked at."""
    return UpkeepSettings(
        retention_check_interval_ms=top.integer("log.retention.check.interval.ms", 300_000, 1),
        cleaner_enable=top.boolean("log.cleaner.enable", True),
        cleaner_backoff_ms=top.integer("log.cleaner.backoff.ms", 15_000, 1),
        cleaner_dedupe_buffer_bytes=top.integer(
            "log.cleaner.dedupe.buffer.size", DEDUPE_BUFFER_BYTES, 1 << 20
        ),
    )
