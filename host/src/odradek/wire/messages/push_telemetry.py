"""PushTelemetry, API key 72 (KIP-714).

Source: PushTelemetryRequest.json and PushTelemetryResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    Message,
    Uuid,
    only,
    since,
)


class PushTelemetryRequest(Message, api_key=72, versions=only(0), flexible=since(0)):
    """Push metrics."""

    client_instance_id: Uuid = NIL_UUID
    subscription_id: Int32 = 0
    """The id from the last GetTelemetrySubscriptionsResponse."""
    terminating: Bool = False
    """True on the last push before the client closes."""
    compression_type: Int8 = 0
    """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
    metrics: Bytes | None = b""
    """OTLP ``MetricsData`` v1, compressed. Not nullable in Kafka, but librdkafka before 2.9 writes null if
    it has no metrics (https://github.com/confluentinc/confluent-kafka-python/issues/2185).
    """


class PushTelemetryResponse(Message, answers=PushTelemetryRequest):
    """Answer to `PushTelemetryRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
