"""Batches of pushes to one OpenTelemetry endpoint."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from odradek.plugin import TelemetryRecord
from odradek_otlp.otlp_settings import OtlpProtocol, OtlpSettings
from odradek_otlp.transport import Transport

log = logging.getLogger(__name__)


class OtlpForwarder:
    """One request per batch.

    ``MetricsData`` and ``ExportMetricsServiceRequest`` both are a list of ``ResourceMetrics``, field 1, and
    protobuf messages that are written one after the other are one message: joining the payloads makes the
    request, without decoding and encoding them.
    """

    def __init__(self, settings: OtlpSettings, user_agent: str, transport: Transport | None = None) -> None:
        self.settings = settings
        self.user_agent = user_agent
        self.transport = transport
        self.rejected_data_points = 0
        """Points refused in requests that were taken (partial success); they are not sent again."""

    async def start(self) -> None:
        """Make the client; no connection yet."""
        if self.transport is None:
            self.transport = transport_of(self.settings, self.user_agent)
        await self.transport.open()

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Send the batch as one request; a batch without metrics is nothing to send.

        Raises:
            Retry: The endpoint is not there, too slow, or asks to come back.
            Reject: It refuses the request.
        """
        assert self.transport is not None, "deliver before start"
        body = b"".join([record.payload.data for record in batch])
        if body:
            self.note_partial_success(await self.transport.send(body))

    async def close(self) -> None:
        """Let go of connections; also without or after a failed start."""
        if self.transport is not None:
            await self.transport.close()

    def note_partial_success(self, answer: bytes) -> None:
        """Count and tell what the far side did not like; the specification forbids to send it again."""
        if not answer:
            return
        try:
            partial = ExportMetricsServiceResponse.FromString(answer).partial_success
        except DecodeError:
            log.debug("the answer of the OTLP endpoint is not one", extra={"target": self.settings.target})
            return
        if not partial.rejected_data_points and not partial.error_message:
            return
        self.rejected_data_points += max(0, partial.rejected_data_points)
        log.warning(
            "the OTLP endpoint took the request with reservations",
            extra={
                "target": self.settings.target,
                "rejected_data_points": partial.rejected_data_points,
                "problem": partial.error_message,
            },
        )


def transport_of(settings: OtlpSettings, user_agent: str) -> Transport:
    """Imports one of the two large libraries, on the forwarder's thread."""
    if settings.protocol is OtlpProtocol.GRPC:
        from odradek_otlp.grpc_transport import GrpcTransport

        return GrpcTransport(settings, user_agent)
    from odradek_otlp.http_transport import HttpTransport

    return HttpTransport(settings, user_agent)
