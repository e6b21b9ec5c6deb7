"""An accepted push as the bytes of a record, for the hot path; `odradek.topic.telemetry_topic` documents the
format.

Most of a record is the same for all pushes of a client instance on a connection and is encoded once.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from odradek.plugin.context import RequestContext
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance, RecordHead
from odradek.topic.telemetry_topic import (
    CODEC,
    CODECS,
    RECEIVED_MS,
    client_headers,
    encode_headers,
    push_headers,
    record_key,
)
from odradek.wire.record import Headers, encoded_headers, encoded_varint

HEADERS: Final = encoded_varint(16)
"""How many headers the record of a push has."""


def without_count(headers: Headers) -> bytes:
    """Encoded headers, to stand among others."""
    return encoded_headers(headers)[1:]


RECEIVED: Final = without_count(((RECEIVED_MS, None),))[:-1]
"""The name of the header. The length of the value and the value follow."""
DIGITS: Final = 13
"""The digits of a time in milliseconds, until the year 2286."""
RECEIVED_OF_TODAY: Final = RECEIVED + encoded_varint(DIGITS)
TAILS: Final = {
    (codec, terminating): without_count(
        tuple(header for header in push_headers(0, codec, terminating) if header[0] != RECEIVED_MS)
    )
    for codec in range(len(CODECS))
    for terminating in (False, True)
}
assert CODEC.encode() in TAILS[0, False]


def partition_of(client_instance_id: bytes, partitions: int) -> int:
    """The partition for all pushes of a client instance, so that they stay in order."""
    return crc32(client_instance_id) % partitions


def record_head(instance: ClientMetricsInstance, context: RequestContext) -> RecordHead:
    """The parts that each push shares, remembered for the connection that pushed last."""
    head = instance.record_head
    if head is None or head[0] is not context.connection or head[1] != context.client_id:
        key = record_key(instance.client_instance_id)
        headers = client_headers(context, instance.push_interval_ms, instance.subscription_id)
        instance.record_head = head = (
            context.connection,
            context.client_id,
            encoded_varint(len(key)) + key,
            HEADERS + without_count(tuple(headers)),
        )
    return head


def record_parts(push: AcceptedPush) -> tuple[bytes, ...]:
    """The record after its offset delta: key, value and headers."""
    context, payload = push.context, push.payload
    if payload.refused:
        return parts_of_record(push.record())
    _, _, key, client = record_head(push.instance, context)
    received = b"%d" % context.received_ms
    begin = RECEIVED_OF_TODAY if len(received) == DIGITS else RECEIVED + encoded_varint(len(received))
    headers = client + begin + received + TAILS[push.codec, payload.terminating]
    data = payload.data
    return key + encoded_varint(len(data)), data, headers


def parts_of_record(record: TelemetryRecord) -> tuple[bytes, ...]:
    """A record that no client pushed to this host, as `record_parts`."""
    key, data = record_key(record.payload.client_instance_id), record.payload.data
    start = encoded_varint(len(key)) + key + encoded_varint(len(data))
    return start, data, encoded_headers(tuple(encode_headers(record)))
