"""Batches of pushes to one OpenTelemetry endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from odradek.plugin import NotOtlp, Reject, Retry, TelemetryRecord
from odradek_otlp.metrics_bytes import filtered, merged
from odradek_otlp.otlp_settings import OtlpProtocol, OtlpSettings
from odradek_otlp.request_plan import requests_of
from odradek_otlp.transport import Transport, Unauthorized

log = logging.getLogger(__name__)


class OtlpForwarder:
    """A batch becomes one request, or several in flight when it is large.

    ``MetricsData`` and ``ExportMetricsServiceRequest`` both are a list of ``ResourceMetrics``, field 1, and
    protobuf messages that are written one after the other are one message: joining the payloads makes the
    request, without decoding and encoding them.
    """

    def __init__(self, settings: OtlpSettings, user_agent: str, transport: Transport | None = None) -> None:
        self.settings = settings
        self.user_agent = user_agent
        self.transport = transport
        self.credentials = settings.credentials()
        self.prefixes = tuple(prefix.encode() for prefix in settings.metrics)
        self.rejected_data_points = 0
        """Points refused in requests that were taken (partial success); they are not sent again."""

    async def start(self) -> None:
        """Make the client; no connection yet. Started again it begins anew."""
        if self.transport is None:
            self.transport = transport_of(self.settings, self.user_agent)
        await self.transport.close()
        await self.transport.open()

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Send the batch; a batch without metrics is nothing to send.

        Raises:
            Retry: The endpoint is not there, too slow, or asks to come back.
            Reject: It refuses a request. The record is named when the request was of that record alone.
        """
        assert self.transport is not None, "deliver before start"
        await self.transport.refresh()
        requests = requests_of(batch, self.settings.requests_in_flight)
        if len(requests) == 1:
            outcomes = [await self.outcome(requests[0])]
        else:
            outcomes = list(await asyncio.gather(*map(self.outcome, requests)))
        refused = [outcome for outcome in outcomes if outcome is not None]
        if refused:
            taken = zip(requests, outcomes, strict=True)
            raise summed(refused, [record for request, error in taken if error is None for record in request])

    async def close(self) -> None:
        """Let go of connections; also without or after a failed start."""
        if self.transport is not None:
            await self.transport.close()

    async def outcome(self, request: list[TelemetryRecord]) -> Retry | Reject | None:
        """Send one request; what the endpoint had against it."""
        try:
            if body := self.body_of(request):
                self.note_partial_success(await self.exchange(body))
        except Reject as error:
            return Reject(str(error), error.records or (request if len(request) == 1 else ()))
        except Retry as error:
            return error
        return None

    def body_of(self, request: Sequence[TelemetryRecord]) -> bytes:
        """The request's bytes: what is equal in pushes of one client instance is written once.

        Raises:
            Reject: A record has to be looked into for the filter, and is no MetricsData.
        """
        pushes: dict[bytes, list[bytes]] = {}
        for record in request:
            if record.payload.data:
                pushes.setdefault(record.payload.client_instance_id, []).append(record.payload.data)
        joined = [b"".join(datas) for datas in pushes.values()]
        if not self.prefixes:
            return b"".join([merged(data) for data in joined])
        try:
            return b"".join([filtered(data, self.prefixes) for data in joined])
        except NotOtlp as error:
            raise Reject(str(error), [record for record in request if not is_metrics(record)]) from error

    async def exchange(self, body: bytes) -> bytes:
        """Send; once more at once when the secrets were renewed in the meantime.

        Raises:
            Retry, Reject: As `Transport.send`.
        """
        assert self.transport is not None
        used = self.credentials.request_headers()
        try:
            return await self.transport.send(body, used)
        except Unauthorized:
            renewed = self.credentials.reread()
            if renewed == used:
                raise
        return await self.transport.send(body, renewed)

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


def summed(refused: Sequence[Retry | Reject], delivered: Sequence[TelemetryRecord]) -> Retry | Reject:
    """One error for a batch. A retry wins: what was refused for good will be refused again."""
    retries = [error for error in refused if isinstance(error, Retry)]
    if retries:
        waits_s = [error.after_s for error in retries if error.after_s is not None]
        return Retry(str(retries[0]), max(waits_s, default=None), delivered)
    records = [record for error in refused if isinstance(error, Reject) for record in error.records]
    return Reject(str(refused[0]), records, delivered)


def is_metrics(record: TelemetryRecord) -> bool:
    try:
        filtered(record.payload.data, (b"",))
    except NotOtlp:
        return False
    return True


def transport_of(settings: OtlpSettings, user_agent: str) -> Transport:
    """Imports one of the two large libraries, on the forwarder's thread."""
    if settings.protocol is OtlpProtocol.GRPC:
        from odradek_otlp.grpc_transport import GrpcTransport

        return GrpcTransport(settings, user_agent)
    from odradek_otlp.http_transport import HttpTransport

    return HttpTransport(settings, user_agent)
