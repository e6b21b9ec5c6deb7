"""Topic configuration with Kafka's keys."""

from __future__ import annotations

import pytest

from odradek.log.log_config import LOG_CONFIG_KEYS, LogConfig
from odradek.plugin.config import ConfigError
from odradek.wire.compression import Codec
from odradek.wire.record_batch import TimestampType


def test_defaults_are_kafkas() -> None:
    properties: dict[str, str] = {}

    config = LogConfig.parse(properties)

    assert config == LogConfig()
    assert (config.segment_bytes, config.segment_ms) == (1 << 30, 604_800_000)
    assert (config.max_message_bytes, config.message_timestamp_after_max_ms) == (1_048_588, 3_600_000)
    assert (config.retention_ms, config.retention_bytes) == (604_800_000, -1)
    assert not config.is_compacted


def test_every_kind_of_value_is_read() -> None:
    properties = {
        "segment.bytes": "1048576",
        "segment.ms": "60000",
        "max.message.bytes": "2000000",
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": "5000",
        "compression.type": "zstd",
        "cleanup.policy": "compact,delete",
        "min.cleanable.dirty.ratio": "0.25",
        "retention.bytes": "-1",
        "preallocate": "true",
    }

    config = LogConfig.parse(properties)

    assert (config.segment_bytes, config.segment_ms, config.max_message_bytes) == (1 << 20, 60_000, 2_000_000)
    assert config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (config.message_timestamp_before_max_ms, config.compression_type) == (5_000, Codec.ZSTD)
    assert (config.is_compacted, config.min_cleanable_dirty_ratio, config.preallocate) == (True, 0.25, True)


def test_properties_override_the_defaults() -> None:
    defaults = LogConfig.parse({"segment.bytes": "2097152", "compression.type": "gzip"})

    config = LogConfig.parse({"compression.type": "producer"}, defaults)

    assert (config.segment_bytes, config.compression_type) == (2_097_152, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("segment.bytes", "1024"),
        ("segment.bytes", "many"),
        ("segment.bytes", "2147483648"),
        ("segment.ms", "0"),
        ("retention.ms", "-2"),
        ("message.timestamp.type", "createtime"),
        ("compression.type", "brotli"),
        ("cleanup.policy", "compact,shred"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("preallocate", "maybe"),
        ("segment_bytes", "1048576"),
        ("validate.records", "true"),
        ("no.such.key", "1"),
    ],
)
def test_a_bad_key_or_value_is_named(key: str, value: str) -> None:
    properties = {key: value}

    with pytest.raises(ConfigError) as problem:
        LogConfig.parse(properties)

    assert problem.value.path == key


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("segment.bytes", "1024", "Value must be at least 1048576"),
        ("segment.bytes", "many", "Not a number of type INT"),
        ("segment.bytes", "2147483648", "Not a number of type INT"),
        ("retention.ms", "9223372036854775808", "Not a number of type LONG"),
        ("compression.gzip.level", "10", "Value must be between 1 and 9 or equal to -1"),
        ("min.cleanable.dirty.ratio", "nan", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "half", "Not a number of type DOUBLE"),
        ("preallocate", "maybe", "Expected value to be either true or false"),
        ("message.timestamp.type", "now", "String must be one of: CreateTime, LogAppendTime"),
        ("compression.type", "x", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
    ],
)
def test_a_wrong_value_is_refused_with_kafkas_message(key: str, value: str, problem: str) -> None:
    properties = {key: value}

    with pytest.raises(ConfigError) as refusal:
        LogConfig.parse(properties)

    assert refusal.value.problem == f"Invalid value {value} for configuration {key}: {problem}"


def test_the_wrong_element_of_a_list_is_named() -> None:
    properties = {"cleanup.policy": "compact, shred"}

    with pytest.raises(ConfigError) as refusal:
        LogConfig.parse(properties)

    assert refusal.value.problem == (
        "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete"
    )


def test_an_empty_cleanup_policy_is_valid() -> None:
    properties = {"cleanup.policy": ""}

    config = LogConfig.parse(properties)

    assert config.cleanup_policy == frozenset()


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_min_lag_above_max_lag_is_refused_under_every_policy(policy: str) -> None:
    properties = {"cleanup.policy": policy, "min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}

    with pytest.raises(ConfigError) as refusal:
        LogConfig.parse(properties)

    assert refusal.value.path == "min.compaction.lag.ms"


def test_the_keys_are_listed() -> None:
    spelled_as_in_kafka = {"segment.bytes", "max.message.bytes", "unclean.leader.election.enable", "flush.ms"}

    keys = LOG_CONFIG_KEYS

    assert spelled_as_in_kafka <= keys
