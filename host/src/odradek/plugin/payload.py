"""The payload of a push."""

from __future__ import annotations

from dataclasses import dataclass

CONTENT_TYPE = "OTLP"
"""Value of ``ClientTelemetryPayload.contentType()`` in Kafka's source (the KIP has a longer text)."""


@dataclass(slots=True, eq=False)
class ClientTelemetryPayload:
    """One push: decompressed, validated as OTLP, and labeled.

    All plugins receive the same object and must not change it.
    """

    client_instance_id: bytes
    """Sixteen raw bytes."""
    terminating: bool
    """True on the last push before the client closes."""
    data: bytes
    """A serialized ``opentelemetry.proto.metrics.v1.MetricsData``."""
    content_type: str = CONTENT_TYPE
    refused: int = 0
    """Kafka's error code in the answer to a push that was refused and stored all the same; 0 if accepted."""
