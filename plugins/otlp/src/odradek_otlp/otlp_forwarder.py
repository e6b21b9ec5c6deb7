"""Delivers batches of pushes to one OpenTelemetry endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from functools import partial

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from odradek.endpoints import Misdirected, with_credentials
from odradek.otlp import NotOtlp
from odradek.plugin import Reject, Retry, TelemetryRecord
from odradek_otlp.distinct_labels import DistinctLabels
from odradek_otlp.metrics_bytes import filtered, merged
from odradek_otlp.otlp_settings import OtlpProtocol, OtlpSettings
from odradek_otlp.request_plan import requests_of
from odradek_otlp.transport import Transport

log = logging.getLogger(__name__)

PARTIAL_SUCCESS = "partial_success"


class OtlpForwarder:
    """Sends a batch as one request, or as several in flight if it is large.

    ``MetricsData`` and ``ExportMetricsServiceRequest`` are both a list of ``ResourceMetrics`` in field 1, and
    concatenated protobuf messages are one merged message. So the payloads are joined into a request without
    decoding them.
    """

    def __init__(self, settings: OtlpSettings, user_agent: str, transport: Transport | None = None) -> None:
        self.settings = settings
        self.user_agent = user_agent
        self.transport = transport
        self.credentials = settings.credentials()
        self.prefixes = tuple(prefix.encode() for prefix in settings.metrics)
        self.labels = DistinctLabels()
        self.distinct = self.labels.apply if settings.distinct_labels else unchanged
        self.refused_points: Counter[str] = Counter()
        """Points refused in accepted requests (partial success); they are not sent again."""

    @property
    def renamed_points(self) -> int | None:
        """For a metric; None if labels are sent as they are. Any thread may read it."""
        return self.labels.points if self.settings.distinct_labels else None

    async def start(self) -> None:
        """Create the client without connecting. A second start replaces the client."""
        if self.transport is None:
            self.transport = transport_of(self.settings, self.user_agent)
        await self.transport.close()
        await self.transport.open()

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Send the batch. A batch without metrics is not sent.

        Raises:
            Retry: The endpoint is unreachable or too slow, or asks for a retry.
            Reject: The endpoint refused a request. Names the record if the request had only that one.
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
        """Close all connections; also without or after a failed start."""
        if self.transport is not None:
            await self.transport.close()

    async def outcome(self, request: list[TelemetryRecord]) -> Retry | Reject | None:
        """Send one request; return the endpoint's refusal, or None if it accepted."""
        transport = self.transport
        assert transport is not None
        try:
            if body := self.body_of(request):
                self.note_partial_success(
                    await with_credentials(self.credentials, partial(transport.send, body))
                )
        except Reject as error:
            return Reject(str(error), error.records or (request if len(request) == 1 else ()))
        except Retry as error:
            return error
        return None

    def body_of(self, request: Sequence[TelemetryRecord]) -> bytes:
        """The body of a request. Equal Resources and scopes of a client instance are written once.

        Raises:
            Reject: Metrics are filtered, and a record is not MetricsData.
        """
        pushes: dict[bytes, list[bytes]] = {}
        for record in request:
            if record.payload.data:
                data = self.distinct(record.payload.data)
                pushes.setdefault(record.payload.client_instance_id, []).append(data)
        joined = [b"".join(datas) for datas in pushes.values()]
        if not self.prefixes:
            return b"".join([merged(data) for data in joined])
        try:
            return b"".join([filtered(data, self.prefixes) for data in joined])
        except NotOtlp as error:
            raise Reject(str(error), [record for record in request if not is_metrics(record)]) from error

    def note_partial_success(self, answer: bytes) -> None:
        """Count and log refused points; the specification forbids sending them again.

        Raises:
            Misdirected: The answer is not OTLP.
        """
        if not answer:
            return
        try:
            partial = ExportMetricsServiceResponse.FromString(answer).partial_success
        except DecodeError as error:
            raise Misdirected("the answer is not OTLP") from error
        if not partial.rejected_data_points and not partial.error_message:
            return
        self.refused_points[PARTIAL_SUCCESS] += max(0, partial.rejected_data_points)
        log.warning(
            "the OTLP endpoint accepted the request only in part; refused points are not sent again",
            extra={
                "target": self.settings.target,
                "rejected_data_points": partial.rejected_data_points,
                "problem": partial.error_message,
            },
        )


def summed(refused: Sequence[Retry | Reject], delivered: Sequence[TelemetryRecord]) -> Retry | Reject:
    """One error for a batch. `Retry` wins over `Reject`: a rejected request will be rejected again."""
    retries = [error for error in refused if isinstance(error, Retry)]
    if retries:
        waits_s = [error.after_s for error in retries if error.after_s is not None]
        return Retry(str(retries[0]), max(waits_s, default=None), delivered)
    records = [record for error in refused if isinstance(error, Reject) for record in error.records]
    return Reject(str(refused[0]), records, delivered)


def unchanged(data: bytes) -> bytes:
    return data


def is_metrics(record: TelemetryRecord) -> bool:
    try:
        filtered(record.payload.data, (b"",))
    except NotOtlp:
        return False
    return True


def transport_of(settings: OtlpSettings, user_agent: str) -> Transport:
    """The transport of the configured protocol; imports its large library on the forwarder's thread."""
    if settings.protocol is OtlpProtocol.GRPC:
        from odradek_otlp.grpc_transport import GrpcTransport

        return GrpcTransport(settings, user_agent)
    from odradek_otlp.http_transport import HttpTransport

    return HttpTransport(settings, user_agent)
