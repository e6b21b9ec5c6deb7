"""Kafka records of a push: key, value, headers.

With the default key and encoding, a record equals the one in the host's own telemetry topic, so every reader
of that topic can read the exported one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odradek.plugin import TelemetryRecord
from odradek.topic import encode_headers, record_key
from odradek_kafka.kafka_settings import Encoding, Key
from odradek_kafka.otlp_json import otlp_json


@dataclass(slots=True, eq=False)
class ExportMessage:
    """One record to send, and its push."""

    record: TelemetryRecord
    topic: str
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]

    @property
    def timestamp_ms(self) -> int:
        """Time when the host received the push, epoch milliseconds."""
        return self.record.context.received_ms


def instance_key(record: TelemetryRecord) -> bytes:
    return record_key(record.payload.client_instance_id)


def client_key(record: TelemetryRecord) -> bytes | None:
    client_id = record.context.client_id
    return None if client_id is None else client_id.encode("utf-8", "surrogateescape")


KEYS: Final[dict[Key, Callable[[TelemetryRecord], bytes | None]]] = {
    Key.CLIENT_INSTANCE_ID: instance_key,
    Key.CLIENT_ID: client_key,
    Key.NONE: lambda record: None,
}
VALUES: Final[dict[Encoding, Callable[[bytes], bytes]]] = {
    Encoding.PROTO: lambda data: data,
    Encoding.JSON: otlp_json,
}


def export_message(record: TelemetryRecord, topic: str, encoding: Encoding, key: Key) -> ExportMessage:
    """The record of a push.

    Raises:
        google.protobuf.message.DecodeError: The encoding is JSON and the payload is not OTLP.
    """
    value = VALUES[encoding](record.payload.data)
    return ExportMessage(record, topic, KEYS[key](record), value, encode_headers(record))


def liveness_message(record: TelemetryRecord, topic: str) -> ExportMessage:
    """The liveness record of a client instance, for a compacted topic."""
    value = json.dumps(liveness(record), separators=(",", ":")).encode()
    return ExportMessage(record, topic, instance_key(record), value, [])


def liveness(record: TelemetryRecord) -> dict[str, str | int | bool | None]:
    """The value of a liveness record; its names are those of the headers."""
    context = record.context
    connection = context.connection
    return {
        "client_instance_id": instance_key(record).decode(),
        "last_seen_ms": context.received_ms,
        "terminating": record.payload.terminating,
        "push_interval_ms": record.push_interval_ms,
        "client_id": context.client_id,
        "client_software_name": connection.client_software_name,
        "client_software_version": connection.client_software_version,
        "client_source_address": connection.client_address,
        "client_source_port": connection.client_port,
        "principal": connection.principal,
        "listener": connection.listener_name,
        "broker_id": connection.node_id,
    }
