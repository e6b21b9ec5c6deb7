"""The public format of the telemetry topic: keys, headers and values of its records.

Importing this room is cheap: the names that need a library are loaded on first use.

>>> from odradek.plugin import ClientTelemetryPayload, TelemetryRecord
>>> from odradek.testing import request_context
>>> from odradek.topic import decode_record, encode_headers, record_key
>>> payload = ClientTelemetryPayload(bytes(range(16)), False, b"")
>>> record = TelemetryRecord(request_context(), 60_000, payload)
>>> key, headers = record_key(payload.client_instance_id), encode_headers(record)
>>> decode_record(key, payload.data, headers).push_interval_ms
60000
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.bounds.first_use import on_first_use
from odradek.topic.telemetry_topic import MalformedTelemetry, decode_record, encode_headers, record_key
from odradek.topic.topic_format import TopicFormat

if TYPE_CHECKING:
    from odradek.topic.topic_messages import decode_message

__all__ = [
    "MalformedTelemetry",
    "TopicFormat",
    "decode_message",
    "decode_record",
    "encode_headers",
    "record_key",
]

# The module of each name that needs protobuf, or the libraries of compression.
__getattr__ = on_first_use(
    __name__,
    topic_messages="decode_message",
)
