"""Configuration of one topic's logs, in Kafka's keys.

After org.apache.kafka.storage.internals.log.LogConfig (Kafka 4.3): names, defaults and least values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from odradek.plugin.config import ConfigError
from odradek.wire.compression import Codec
from odradek.wire.record_batch import TimestampType

_INT32_MAX: Final = 0x7FFFFFFF
_INT64_MAX: Final = 0x7FFFFFFFFFFFFFFF
_DAY_MS: Final = 24 * 60 * 60 * 1000
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


class BadElement(ValueError):
    """One element of a list is not allowed, or a number that Kafka shows as it reads it."""

    def __init__(self, element: str, problem: str) -> None:
        super().__init__(problem)
        self.element = element


def _number(least: int, most: int, largest: int, type_name: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value: int = _read(int, text, type_name)
        if not -largest - 1 <= value <= largest:
            raise ValueError(f"Not a number of type {type_name}")
        _check_range(value, least, most)
        return value

    return parse


def _read(kind: Callable[[str], Any], text: str, type_name: str) -> Any:
    try:
        return kind(text.strip())
    except ValueError:
        raise ValueError(f"Not a number of type {type_name}") from None


def _check_range(value: float, least: int, most: int) -> None:
    if value < least:
        raise ValueError(f"Value must be at least {least}")
    if not value <= most:
        raise ValueError(f"Value must be no more than {most}")


def _ratio(text: str) -> float:
    value: float = _read(float, text, "DOUBLE")
    try:
        _check_range(value, 0, 1)
    except ValueError as error:
        raise BadElement(str(value), str(error)) from None
    return value


def _gzip_level(text: str) -> int:
    value: int = _read(int, text, "INT")
    if value != -1 and not 1 <= value <= 9:
        raise ValueError("Value must be between 1 and 9 or equal to -1")
    return value


def _one_of(choices: Mapping[str, Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        if text not in choices:
            raise ValueError(f"String must be one of: {', '.join(choices)}")
        return choices[text]

    return parse


def _boolean(text: str) -> bool:
    value = {"true": True, "false": False}.get(text.strip().lower())
    if value is None:
        raise ValueError("Expected value to be either true or false")
    return value


def _policies(text: str) -> frozenset[str]:
    """Nothing at all means that nothing is ever cleaned up (KIP-1132)."""
    policies = frozenset(policy.strip() for policy in text.split(",")) if text.strip() else frozenset()
    for policy in sorted(policies - {"compact", "delete"}):
        raise BadElement(policy, "String must be one of: compact, delete")
    return policies


def _key(default: Any, parse: Callable[[str], Any]) -> Any:
    """A field whose name, with dots for underscores, is a key of Kafka."""
    return field(default=default, metadata={"parse": parse})


def _int32(default: int, least: int = 0) -> Any:
    return _key(default, _number(least, _INT32_MAX, _INT32_MAX, "INT"))


def _int64(default: int, least: int = 0) -> Any:
    return _key(default, _number(least, _INT64_MAX, _INT64_MAX, "LONG"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """What a `PartitionLog`, the cleaner and the retention act on.

    Levels of compression, ``segment.jitter.ms``, ``min.insync.replicas``, ``preallocate`` and
    ``unclean.leader.election.enable`` are taken and shown, as clients set them, and change nothing here.

    The constructor takes any value, so that tests can have segments of a few kB; ``parse`` has Kafka's
    bounds.
    """

    segment_bytes: int = _int32(1 << 30, 1 << 20)
    segment_ms: int = _int64(7 * _DAY_MS, 1)
    segment_jitter_ms: int = _int64(0)
    segment_index_bytes: int = _int32(10 << 20, 4)
    index_interval_bytes: int = _int32(4096)
    max_message_bytes: int = _int32((1 << 20) + 12)
    message_timestamp_type: TimestampType = _key(TimestampType.CREATE_TIME, _one_of(_TIMESTAMP_TYPES))  # noqa: RUF009
    message_timestamp_before_max_ms: int = _int64(_INT64_MAX)
    message_timestamp_after_max_ms: int = _int64(60 * 60 * 1000)
    compression_type: Codec | None = _key(None, _one_of(_COMPRESSION_TYPES))  # noqa: RUF009
    """None keeps the codec of the producer."""
    compression_gzip_level: int = _key(-1, _gzip_level)
    compression_lz4_level: int = _key(9, _number(1, 17, _INT32_MAX, "INT"))
    compression_zstd_level: int = _key(3, _number(-131072, 22, _INT32_MAX, "INT"))
    cleanup_policy: frozenset[str] = _key(frozenset({"delete"}), _policies)
    retention_ms: int = _int64(7 * _DAY_MS, -1)
    retention_bytes: int = _int64(-1, -1)
    delete_retention_ms: int = _int64(_DAY_MS)
    min_compaction_lag_ms: int = _int64(0)
    max_compaction_lag_ms: int = _int64(_INT64_MAX, 1)
    min_cleanable_dirty_ratio: float = _key(0.5, _ratio)
    file_delete_delay_ms: int = _int64(60_000)
    flush_messages: int = _int64(_INT64_MAX, 1)
    flush_ms: int = _int64(_INT64_MAX)
    min_insync_replicas: int = _int32(1, 1)
    preallocate: bool = _key(False, _boolean)
    unclean_leader_election_enable: bool = _key(False, _boolean)

    validate_records: bool = False
    """Open every batch on append, as Kafka does; else only those whose topic needs it. Not a key of Kafka."""

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def flushes(self) -> bool:
        """Whether appends are forced to the disk at all; else the operating system writes when it likes."""
        return self.flush_ms != _INT64_MAX or self.flush_messages != _INT64_MAX

    @property
    def max_segment_ms(self) -> int:
        """After how long a segment ends: a compacted topic has to see its records compacted in time."""
        if self.is_compacted and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    @classmethod
    def parse(cls, properties: Mapping[str, str], defaults: LogConfig | None = None) -> LogConfig:
        """The configuration that ``properties`` make out of ``defaults``.

        Raises:
            ConfigError: An unknown key, or a value out of its bounds.
        """
        values = {key.replace(".", "_"): _parsed(key, text) for key, text in properties.items()}
        config = replace(defaults or cls(), **values)
        least_ms, most_ms = config.min_compaction_lag_ms, config.max_compaction_lag_ms
        if least_ms > most_ms:
            raise ConfigError(
                "min.compaction.lag.ms",
                f"conflict topic config setting min.compaction.lag.ms ({least_ms}) > "
                f"max.compaction.lag.ms ({most_ms})",
            )
        return config


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    each.name.replace("_", "."): each.metadata["parse"] for each in fields(LogConfig) if each.metadata
}
LOG_CONFIG_KEYS: Final = frozenset(_PARSERS)
"""The keys that ``LogConfig.parse`` takes."""


def _parsed(key: str, text: str) -> Any:
    parse = _PARSERS.get(key)
    if parse is None:
        raise ConfigError(key, f"Unknown topic config name: {key}")
    try:
        return parse(text)
    except BadElement as error:
        raise ConfigError(key, f"Invalid value {error.element} for configuration {key}: {error}") from None
    except ValueError as error:
        raise ConfigError(key, f"Invalid value {text} for configuration {key}: {error}") from None
