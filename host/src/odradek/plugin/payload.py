"""What a client pushed."""

from __future__ import annotations

from dataclasses import dataclass

CONTENT_TYPE = "OTLP"
"""What ``ClientTelemetryPayload.contentType()`` says in Kafka's source (the KIP has a longer text)."""


@dataclass(slots=True, eq=False)
class ClientTelemetryPayload:
    """One push, decompressed, found to be OTLP, and labeled. All plugins are given the same object: read
    only.
    """

    client_instance_id: bytes
    """Sixteen raw bytes."""
    terminating: bool
    """True on the last push before the client closes."""
    data: bytes
    """A serialized ``opentelemetry.proto.metrics.v1.MetricsData``."""
    content_type: str = CONTENT_TYPE
