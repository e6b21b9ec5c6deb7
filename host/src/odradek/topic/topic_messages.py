"""Telemetry records of a Kafka message, in any format of `odradek.topic.TopicFormat`.

All readers of topics use this function, so that they find the same clients with the same identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from odradek.otlp.otlp_json import metrics_of_json
from odradek.otlp.protobuf_bytes import NotOtlp
from odradek.otlp.sender_records import Sender, otlp_records
from odradek.plugin.protocols import TelemetryRecord
from odradek.topic.telemetry_topic import MalformedTelemetry, decode_record
from odradek.topic.topic_format import TopicFormat

SOURCE: Final = "kafka"
"""Marks records that came as OTLP in a topic."""
NOBODY: Final = Sender()
MAX_JSON_BYTES: Final = 16 << 20
"""Reading JSON takes up to 25 times its memory."""


def decode_message(
    topic_format: TopicFormat,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | str | None]],
    *,
    timestamp_ms: int,
    interval_ms: int,
) -> list[TelemetryRecord]:
    """Decode a message of a topic.

    Args:
        topic_format: The format of the topic.
        key: The key of the message.
        value: The value of the message.
        headers: The headers of the message.
        timestamp_ms: The timestamp of the message, for formats that tell no time of their own.
        interval_ms: Stands for the push interval in formats that tell none.

    Returns:
        One record; of OTLP one for each client instance in the message, or none if it is empty. The position
        of the message is the origin of records that tell none: the caller knows it.

    Raises:
        MalformedTelemetry: The message does not have the format.
    """
    if topic_format is TopicFormat.ODRADEK:
        return [decode_record(key, value, headers)]
    if value is None:
        raise MalformedTelemetry("a message without value")
    try:
        if topic_format is TopicFormat.OTLP_JSON:
            value = request_of_json(value)
        return otlp_records(value, NOBODY, max(0, timestamp_ms), interval_ms, SOURCE)
    except NotOtlp as error:
        raise MalformedTelemetry(str(error)) from error


def request_of_json(text: bytes) -> bytes:
    """A request of OTLP/JSON as protobuf.

    Raises:
        NotOtlp: The text is not a request of OTLP for metrics, or too large.
    """
    if len(text) > MAX_JSON_BYTES:
        raise NotOtlp(f"{len(text)} bytes of JSON, at most {MAX_JSON_BYTES} are read")
    return metrics_of_json(text)
