"""GetTelemetrySubscriptions, API key 71 (KIP-714).

Source: GetTelemetrySubscriptionsRequest.json and GetTelemetrySubscriptionsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Uuid,
    only,
    since,
)


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions=only(0), flexible=since(0)):
    """Ask which metrics to push and how often; also asks for an id on first contact."""

    client_instance_id: Uuid = NIL_UUID
    """The nil uuid asks the broker for a new one."""


class GetTelemetrySubscriptionsResponse(Message, answers=GetTelemetrySubscriptionsRequest):
    """Answer to `GetTelemetrySubscriptionsRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: Uuid = NIL_UUID
    """A new id if the request had none, otherwise the id of the request."""
    subscription_id: Int32 = 0
    """Changes whenever the requested metrics or the interval change."""
    accepted_compression_types: list[Int8] = field(default_factory=list)
    """Best first: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    """The largest push that the broker accepts, compressed."""
    delta_temporality: Bool = False
    """True for delta temporality, false for cumulative."""
    requested_metrics: list[String] = field(default_factory=list)
    """Prefixes of metric names. Empty list: none. ``*`` alone: all."""
