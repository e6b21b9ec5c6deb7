"""Protect the telemetry topics from clients: pushes and their delivery depend on these topics."""

from __future__ import annotations

from odradek.broker.topics import TopicGuard
from odradek.log.log_config import LogConfig
from odradek.otlp.protobuf_bytes import NotOtlp
from odradek.telemetry.otlp_schema import validate
from odradek.topic.telemetry_topic import MalformedTelemetry, decode_record
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import Record


def telemetry_fault(record: Record) -> str | None:
    """The fault of a record that the telemetry topic cannot hold; None if it has none."""
    try:
        validate(decode_record(record.key, record.value, record.headers).payload.data)
    except MalformedTelemetry as error:
        return f"not a record of the telemetry topic: {error}"
    except NotOtlp:
        return "not a record of the telemetry topic: the value is not OTLP MetricsData"
    return None


def telemetry_guard(least_bytes: int, *, closed: bool, internal: bool) -> TopicGuard:
    """The guard of the telemetry topic, which needs batches and segments of at least this many bytes."""
    check_config = letters_guard(least_bytes, internal=internal).check_config
    return TopicGuard(check_config, telemetry_fault, closed, internal)


def letters_guard(least_bytes: int, *, internal: bool) -> TopicGuard:
    """The guard of the topic of dead letters: anything may be in it."""

    def check_config(config: LogConfig) -> None:
        for key, value in (
            ("max.message.bytes", config.max_message_bytes),
            ("segment.bytes", config.segment_bytes),
        ):
            if value < least_bytes:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG,
                    f"{key} must be at least {least_bytes} in a topic of telemetry, or pushes do not fit",
                )
        if config.is_compacted:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                "cleanup.policy must be delete in a topic of telemetry: compaction removes pushes",
            )

    return TopicGuard(check_config, internal=internal)
