"""OTLP over gRPC (OpenTelemetry Protocol specification 1.x, "OTLP/gRPC")."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import cast

import grpc
import grpc.aio

from odradek.endpoints import BadCertificate, Misdirected, Unauthorized, WatchedFiles, titled
from odradek.plugin import Reject, Retry
from odradek_otlp.otlp_settings import Compression, OtlpSettings
from odradek_otlp.rpc_status import RpcStatus, read_status
from odradek_otlp.transport import refusal

log = logging.getLogger(__name__)

METHOD = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
STATUS_DETAILS = "grpc-status-details-bin"
RETRYABLE = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""Not RESOURCE_EXHAUSTED: it is retryable only with a RetryInfo, since the request may be too large."""
UNAUTHORIZED = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})
REDIRECT = "http2 header with status: 3"
"""gRPC's words for an HTTP redirect, which has no status code of its own."""
RECONNECT_MS = 500
RECONNECT_MAX_MS = 5_000
"""By default gRPC waits up to two minutes to reconnect to a server; the host has a backoff of its own."""


class GrpcTransport:
    """One unary call per request, with the serialized body unchanged."""

    def __init__(self, settings: OtlpSettings, user_agent: str) -> None:
        self.settings = settings
        self.certificates = WatchedFiles(settings.tls.paths())
        self.silent = False
        """The endpoint did not answer in time: the connection may be dead without gRPC noticing."""
        self.options = (
            ("grpc.primary_user_agent", user_agent),
            ("grpc.initial_reconnect_backoff_ms", RECONNECT_MS),
            ("grpc.max_reconnect_backoff_ms", RECONNECT_MAX_MS),
            # Despite its name, this is the time limit of one attempt to connect.
            ("grpc.min_reconnect_backoff_ms", settings.connect_timeout_ms),
            # Channels of one target share connections by default: a new channel would reuse the dead one.
            ("grpc.use_local_subchannel_pool", 1),
        )
        self.channel: grpc.aio.Channel | None = None

    async def open(self) -> None:
        self.certificates.changed()
        gzip = self.settings.compression is Compression.GZIP
        compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression
        if self.settings.secure:
            self.channel = grpc.aio.secure_channel(
                self.settings.target,
                grpc.ssl_channel_credentials(**self.settings.tls.contents()),
                self.options,
                compression,
            )
        else:
            self.channel = grpc.aio.insecure_channel(self.settings.target, self.options, compression)

    async def refresh(self) -> None:
        if not self.silent and not (self.certificates.paths and self.certificates.changed()):
            return
        self.silent = False
        before = self.channel
        try:
            await self.open()
        except BadCertificate as error:
            log.warning("certificate not renewed, using the last good one", extra={"problem": str(error)})
        else:
            if before is not None:
                await before.close(None)

    async def send(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        assert self.channel is not None, "send before open"
        # Without serializers gRPC passes bytes through unchanged.
        export = self.channel.unary_unary(METHOD, None, None)
        try:
            answer: bytes = await export(
                body, timeout=self.settings.timeout_ms / 1000, metadata=tuple(headers.items())
            )
        except grpc.aio.AioRpcError as error:
            self.silent |= error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            raise refused(error) from error
        return answer

    async def close(self) -> None:
        channel, self.channel = self.channel, None
        if channel is not None:
            await channel.close(None)


def refused(error: grpc.aio.AioRpcError) -> Retry | Reject:
    """`Retry` or `Reject`, by the specification's table of status codes."""
    code = error.code()
    said = status_details(error)
    # The error of the last address is more useful than gRPC's summary that all addresses failed.
    message = (error.details() or said.message).rpartition("last error: ")[2].removeprefix("UNKNOWN: ")
    if code in UNAUTHORIZED:
        return Unauthorized(titled(f"gRPC {code.name}", message), said.retry_after_s)
    if code is grpc.StatusCode.UNIMPLEMENTED or REDIRECT in message:
        return Misdirected(titled(f"gRPC {code.name}", message))
    retryable = code in RETRYABLE
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        retryable = said.retry_after_s is not None
    return refusal(f"gRPC {code.name}", message, retryable, said.retry_after_s)


def status_details(error: grpc.aio.AioRpcError) -> RpcStatus:
    """The ``google.rpc.Status`` of the trailing metadata; empty if there is none."""
    metadata = cast("Iterable[tuple[str, str | bytes]]", error.trailing_metadata() or ())
    for key, value in metadata:
        if key == STATUS_DETAILS and isinstance(value, bytes):
            return read_status(value)
    return RpcStatus()
