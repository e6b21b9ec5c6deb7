"""An accepted push as the bytes of a record; `odradek.topic.telemetry_topic` documents the format."""

from __future__ import annotations

from zlib import crc32

from odradek.plugin.protocols import TelemetryRecord
from odradek.topic.telemetry_topic import encode_headers, record_key
from odradek.wire.record import encoded_headers, encoded_varint


def partition_of(client_instance_id: bytes, partitions: int) -> int:
    """The partition for all pushes of a client instance, so that they stay in order."""
    return crc32(client_instance_id) % partitions


def record_parts(record: TelemetryRecord) -> tuple[bytes, ...]:
    """The record after its offset delta: key, value and headers."""
    key, data = record_key(record.payload.client_instance_id), record.payload.data
    start = encoded_varint(len(key)) + key + encoded_varint(len(data))
    return start, data, encoded_headers(tuple(encode_headers(record)))
