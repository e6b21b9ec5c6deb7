"""Telemetry records as a forwarder gets them."""

from __future__ import annotations

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.plugin import ClientTelemetryPayload, ConnectionContext, RequestContext, TelemetryRecord


def push_request(client_id: str | None = "orders", received_ms: int = 0) -> RequestContext:
    """The request context of a client on this machine."""
    connection = ConnectionContext(
        connection_id="127.0.0.1:9092-127.0.0.1:40000-0",
        listener_name="PLAINTEXT",
        security_protocol="PLAINTEXT",
        client_address="127.0.0.1",
        client_port=40_000,
        node_id=1,
    )
    return RequestContext(
        connection=connection,
        api_key=72,
        api_version=0,
        correlation_id=0,
        client_id=client_id,
        received_ms=received_ms,
    )


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
