"""Telemetry records as a forwarder gets them."""

from __future__ import annotations

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.plugin import ClientTelemetryPayload, RequestContext, TelemetryRecord
from odradek.testing import request_context


def push_request(client_id: str | None = "orders", received_ms: int = 0) -> RequestContext:
    """The request context of a client on this machine."""
    return request_context(client_id=client_id, received_ms=received_ms)


REQUEST = push_request()


def telemetry_record(
    data: bytes, instance_id: bytes = bytes(16), request: RequestContext = REQUEST
) -> TelemetryRecord:
    """A push that is not terminating, at an interval of a second."""
    return TelemetryRecord(request, 1_000, ClientTelemetryPayload(instance_id, terminating=False, data=data))


def resource_labels(data: bytes) -> dict[str, str]:
    """The attributes of the only Resource of a push."""
    (metrics,) = MetricsData.FromString(data).resource_metrics
    return {each.key: each.value.string_value for each in metrics.resource.attributes}
