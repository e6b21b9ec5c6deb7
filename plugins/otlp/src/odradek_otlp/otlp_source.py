"""Takes metrics of other senders over OTLP/HTTP, and answers once they are stored."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)

from odradek.plugin import Intake, NotOtlp, Refused, Sender, TelemetryRecord, data_points, otlp_records
from odradek_otlp.rpc_status import status_bytes
from odradek_otlp.source_settings import SourceSettings, read_tokens

log = logging.getLogger(__name__)

PATH: Final = "/v1/metrics"
PROTOBUF: Final = "application/x-protobuf"
GZIP: Final = 31
"""``wbits`` of a gzip stream."""
READ_S: Final = 30.0
"""Time for the body of a request."""
IDLE_S: Final = 75.0
ROOM_S: Final = 2.0
"""A request waits this long for room in the log, then its sender tries again."""
WAIT_S: Final = 0.05
GRACE_S: Final = 0.3
"""Time for requests that are being stored when the source stops, and again for their cancellation."""
RETRY_AFTER: Final[Mapping[str, str]] = {"Retry-After": "5"}
INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAVAILABLE, UNAUTHENTICATED = 3, 8, 12, 14, 16
"""Codes of gRPC, which the body of an error has."""


class RefusedRequest(Exception):
    """A request that is not accepted.

    Args:
        status: The status of HTTP.
        code: The code of gRPC.
        reason: For the sender.
        headers: Further headers of the answer.
    """

    def __init__(self, status: int, code: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.code = code
        self.headers = headers

    def answer(self) -> web.Response:
        body = status_bytes(self.code, str(self))
        return web.Response(status=self.status, body=body, content_type=PROTOBUF, headers=self.headers)


class Full(asyncio.Protocol):
    """Closes a connection beyond the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class OtlpSource:
    """Listens for ``ExportMetricsServiceRequest`` over HTTP, binary or with gzip.

    A request is answered with 200 when the host has stored its metrics, with a partial success if it refused
    some, and with 503 if the log has no room: then the sender tries again.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self.settings = settings
        self.held_bytes = 0
        self.port: int | None = None
        """The port that is bound; None while the source does not run."""

    async def run(self, intake: Intake) -> None:
        """Listen until cancelled.

        Raises:
            OSError: The address is in use, or a file of TLS or tokens cannot be read.
        """
        settings = self.settings
        server = web.Server(
            partial(self.handle, intake), access_log=None, auto_decompress=False, keepalive_timeout=IDLE_S
        )

        def protocol() -> asyncio.Protocol:
            return server() if len(server.connections) < settings.connections_max else Full()

        loop = asyncio.get_running_loop()
        listening = await loop.create_server(protocol, settings.host, settings.port, ssl=settings.tls())
        self.port = listening.sockets[0].getsockname()[1]
        log.info("OTLP source listens", extra={"address": f"{settings.host}:{self.port}"})
        try:
            await asyncio.Event().wait()
        finally:
            self.port = None
            listening.close()
            await server.shutdown(GRACE_S)

    def lag(self) -> int | None:
        """Always None: senders do not tell what waits."""
        return None

    async def handle(self, intake: Intake, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            self.check(request)
            return await self.accept(intake, request, self.sender_of(request))
        except RefusedRequest as refused:
            return refused.answer()

    async def accept(self, intake: Intake, request: web.BaseRequest, sender: Sender) -> web.Response:
        """Read and store a request. Its memory counts from the announced size on."""
        most, length = self.settings.request_max_bytes, request.content_length
        if length is not None and length > most:
            raise self.too_large()
        claimed = self.claim(most if length is None else length)
        try:
            data = opened(await self.body(request), request, most)
            claimed += self.claim(max(0, len(data) - claimed))
            return await self.take(intake, data, sender)
        finally:
            self.held_bytes -= claimed

    def sender_of(self, request: web.BaseRequest) -> Sender:
        """The sender, with its token checked.

        Raises:
            RefusedRequest: It has no token that is known.
        """
        settings, principal = self.settings, "User:ANONYMOUS"
        if settings.token_file is not None:
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            given = token.strip().encode("utf-8", "surrogateescape")
            try:
                tokens = read_tokens(settings.token_file)
            except (OSError, ValueError) as error:
                log.error("tokens of the OTLP source cannot be read", extra={"problem": str(error)})
                raise RefusedRequest(503, UNAVAILABLE, "tokens cannot be read", RETRY_AFTER) from error
            known = [hmac.compare_digest(given, each) for each in tokens]
            if scheme.lower() != "bearer" or not any(known):
                challenge = {"WWW-Authenticate": "Bearer"}
                raise RefusedRequest(401, UNAUTHENTICATED, "a valid bearer token is required", challenge)
            principal = "User:otlp"
        found = request.transport.get_extra_info("peername") if request.transport is not None else None
        address, port = found[:2] if found else ("", 0)
        return Sender(
            address=address, port=port, principal=principal, security_protocol=settings.security_protocol
        )

    def check(self, request: web.BaseRequest) -> None:
        """Refuse what is not an export of metrics in a known encoding."""
        if request.path != PATH:
            raise RefusedRequest(404, UNIMPLEMENTED, f"only {PATH} is served: metrics over OTLP/HTTP")
        if request.method != "POST":
            raise RefusedRequest(405, UNIMPLEMENTED, "expected POST", {"Allow": "POST"})
        if request.content_type != PROTOBUF:
            text = f"content type {request.content_type} is not supported, expected {PROTOBUF}"
            raise RefusedRequest(415, INVALID_ARGUMENT, text)
        if encoding_of(request) not in ("identity", "gzip"):
            text = f"content encoding {encoding_of(request)} is not supported, expected gzip or none"
            raise RefusedRequest(415, INVALID_ARGUMENT, text)

    def claim(self, size_bytes: int) -> int:
        """Count the memory of a request; returns the size.

        Raises:
            RefusedRequest: Other requests hold the memory.
        """
        if self.held_bytes + size_bytes > self.settings.buffer_max_bytes:
            raise RefusedRequest(503, UNAVAILABLE, "source.buffer.max.bytes is reached", RETRY_AFTER)
        self.held_bytes += size_bytes
        return size_bytes

    def too_large(self) -> RefusedRequest:
        text = f"larger than source.request.max.bytes ({self.settings.request_max_bytes})"
        return RefusedRequest(413, RESOURCE_EXHAUSTED, text)

    async def body(self, request: web.BaseRequest) -> bytes:
        """The body as it was sent.

        Raises:
            RefusedRequest: It is too large, or takes too long.
        """
        parts: list[bytes] = []
        size_bytes = 0
        try:
            async with asyncio.timeout(READ_S):
                async for part in request.content.iter_any():
                    size_bytes += len(part)
                    if size_bytes > self.settings.request_max_bytes:
                        raise self.too_large()
                    parts.append(part)
        except TimeoutError:
            raise RefusedRequest(408, UNAVAILABLE, f"the body took longer than {READ_S:g} s") from None
        return b"".join(parts)

    async def take(self, intake: Intake, data: bytes, sender: Sender) -> web.Response:
        """Store the metrics of a request and answer it."""
        try:
            records = otlp_records(data, sender, time.time_ns() // 1_000_000, self.settings.interval_ms)
        except NotOtlp as error:
            intake.unreadable(1)
            raise RefusedRequest(400, INVALID_ARGUMENT, f"not OTLP metrics: {error}") from error
        refused = await stored(intake, records)
        response = ExportMetricsServiceResponse()
        if refused:
            response.partial_success.CopyFrom(partial_success(refused))
        return web.Response(body=response.SerializeToString(), content_type=PROTOBUF)


def encoding_of(request: web.BaseRequest) -> str:
    return request.headers.get("Content-Encoding", "identity").lower()


def opened(body: bytes, request: web.BaseRequest, max_bytes: int) -> bytes:
    """The body, decompressed.

    Raises:
        RefusedRequest: It is not gzip, or larger than allowed.
    """
    if encoding_of(request) == "identity":
        return body
    stream = zlib.decompressobj(GZIP)
    try:
        data = stream.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise RefusedRequest(400, INVALID_ARGUMENT, f"the body is not gzip: {error}") from error
    if len(data) > max_bytes:
        text = f"larger than source.request.max.bytes ({max_bytes}) when decompressed"
        raise RefusedRequest(413, RESOURCE_EXHAUSTED, text)
    if not stream.eof:
        raise RefusedRequest(400, INVALID_ARGUMENT, "the gzip stream of the body is cut off")
    return data


async def stored(intake: Intake, records: Sequence[TelemetryRecord]) -> list[Refused]:
    """Store records; return those that the host refused.

    Raises:
        RefusedRequest: The log has no room. What was stored comes again when the sender repeats the request.
    """
    refused: list[Refused] = []
    deadline_s = time.monotonic() + ROOM_S
    left = records
    while left:
        receipt = await intake.store(left)
        refused += receipt.refused
        left = receipt.left
        if left:
            if time.monotonic() > deadline_s:
                raise RefusedRequest(503, UNAVAILABLE, "the log has no room", RETRY_AFTER)
            await asyncio.sleep(WAIT_S)
    return refused


def partial_success(refused: Sequence[Refused]) -> ExportMetricsPartialSuccess:
    """The number of refused data points, and the first reason."""
    points = sum(data_points(each.record.payload.data) for each in refused)
    return ExportMetricsPartialSuccess(rejected_data_points=points, error_message=refused[0].reason)
