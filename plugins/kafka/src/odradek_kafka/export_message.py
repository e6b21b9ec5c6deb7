"""From a push to records of Kafka: key, value, headers.

With the default key and encoding a record is the one that the host writes to its own telemetry topic, so
whatever reads that topic reads an exported one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odradek.plugin import TelemetryRecord, encode_headers, record_key
from odradek_kafka.kafka_settings import Encoding, Key
from odradek_kafka.otlp_json import otlp_json


@dataclass(slots=True, eq=False)
class ExportMessage:
    """One record on its way, and the push that it is about."""

    record: TelemetryRecord
    topic: str
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]

    @property
    def timestamp_ms(self) -> int:
        """When the host received the push."""
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
    """The push itself.

    Raises:
        google.protobuf.message.DecodeError: It is not OTLP after all, and JSON is asked for.
    """
    value = VALUES[encoding](record.payload.data)
    return ExportMessage(record, topic, KEYS[key](record), value, encode_headers(record))


def liveness_message(record: TelemetryRecord, topic: str) -> ExportMessage:
    """When the client instance was last seen, for a compacted topic."""
    value = json.dumps(liveness(record), separators=(",", ":")).encode()
    return ExportMessage(record, topic, instance_key(record), value, [])


def liveness(record: TelemetryRecord) -> dict[str, str | int | bool | None]:
    """The names are those of the headers."""
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
