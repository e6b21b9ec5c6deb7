"""OTLP/HTTP, binary or JSON (OpenTelemetry Protocol specification 1.x, "OTLP/HTTP")."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import Final

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from odradek.endpoints import Address, RenewedTls
from odradek.endpoints.http_server import BoundedServer
from odradek_otlp.reception import Reception
from odradek_otlp.refused_request import (
    MEDIA_TYPE,
    NO_SUCH_PATH,
    NO_TOKEN,
    NOT_POST,
    RETRY_AFTER_S,
    Limit,
    Reason,
    RefusedRequest,
)
from odradek_otlp.rpc_status import status_bytes

PATH: Final = "/v1/metrics"
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
GRACE_S: Final = 0.3
"""Time for requests that are being stored when the source stops, and again for their cancellation."""


class HttpListener:
    """One address."""

    def __init__(self, address: Address, reception: Reception) -> None:
        self.address = address
        self.reception = reception
        self.settings = reception.settings
        self.tls = RenewedTls(self.settings.tls) if self.settings.tls is not None else None
        self.server: BoundedServer | None = None
        self.listening: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen; return the port.

        Raises:
            OSError: The address is in use, or a file of TLS cannot be read.
        """
        loop = asyncio.get_running_loop()
        self.server = BoundedServer(
            self.handle,
            loop=loop,
            connections_max=self.settings.connections_max,
            connections_max_per_ip=self.settings.connections_max_per_ip,
            tls=self.tls.context() if self.tls is not None else None,
            handshake_s=self.settings.request_timeout_ms / 1000,
            refused=partial(self.reception.intake.answered, "connections.max"),
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=self.settings.idle_timeout_ms / 1000,
        )

        self.listening = await loop.create_server(self.server.accept, self.address.hosts, self.address.port)
        return int(self.listening.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self.listening is not None:
            self.listening.close()
        if self.server is not None:
            await self.server.shutdown(GRACE_S)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, in its content type."""
        is_json = request.content_type == JSON
        try:
            try:
                check(request)
            except RefusedRequest as refused:
                self.reception.intake.answered(refused.reason.outcome)
                raise
            response = await self.reception.export(HttpExport(request))
        except RefusedRequest as refused:
            return answer(refused, is_json)
        if is_json:
            return web.Response(body=response_json(response), content_type=JSON)
        return web.Response(body=response.SerializeToString(), content_type=PROTOBUF)


class HttpExport:
    """A request of HTTP as an `odradek_otlp.reception.Export`."""

    def __init__(self, request: web.BaseRequest) -> None:
        self.request = request
        self.authorization = request.headers.get("Authorization", "")
        self.announced_bytes = request.content_length
        self.is_json = request.content_type == JSON

    @property
    def peer(self) -> tuple[str, int]:
        transport = self.request.transport
        found = transport.get_extra_info("peername") if transport is not None else None
        return (found[0], found[1]) if found else ("", 0)

    def is_gzip(self, _body: bytes) -> bool:
        return encoding_of(self.request) == "gzip"

    async def body(self, limit: Limit) -> bytes:
        parts: list[bytes] = []
        size_bytes = 0
        async for part in self.request.content.iter_any():
            size_bytes += len(part)
            if size_bytes > limit.most_bytes:
                raise limit.exceeded()
            parts.append(part)
        return b"".join(parts)


def check(request: web.BaseRequest) -> None:
    """Refuse what is not an export of metrics in a known encoding."""
    if request.path != PATH:
        raise RefusedRequest(NO_SUCH_PATH, f"only {PATH} is served: metrics over OTLP/HTTP")
    if request.method != "POST":
        raise RefusedRequest(NOT_POST, "expected POST")
    if request.content_type not in (PROTOBUF, JSON):
        text = f"content type {request.content_type} is not supported, expected {PROTOBUF} or {JSON}"
        raise RefusedRequest(MEDIA_TYPE, text)
    if encoding_of(request) not in ("identity", "gzip"):
        text = f"content encoding {encoding_of(request)} is not supported, expected gzip or none"
        raise RefusedRequest(MEDIA_TYPE, text)


def response_json(response: ExportMetricsServiceResponse) -> bytes:
    """The answer to a request."""
    if not response.HasField("partial_success"):
        return b"{}"
    partial_success = response.partial_success
    found = {
        "rejectedDataPoints": str(partial_success.rejected_data_points),
        "errorMessage": partial_success.error_message,
    }
    return json.dumps({"partialSuccess": found}).encode()


def encoding_of(request: web.BaseRequest) -> str:
    return request.headers.get("Content-Encoding", "identity").lower()


HEADERS: Final[Mapping[Reason, Mapping[str, str]]] = {
    NO_TOKEN: {"WWW-Authenticate": "Bearer"},
    NOT_POST: {"Allow": "POST"},
}


def answer(refused: RefusedRequest, is_json: bool) -> web.Response:
    """A ``google.rpc.Status`` in the content type of the request."""
    reason, headers = refused.reason, dict(HEADERS.get(refused.reason, {}))
    if reason.is_temporary:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    if is_json:
        body = json.dumps({"code": reason.code, "message": str(refused)}).encode()
        return web.Response(status=reason.status, body=body, content_type=JSON, headers=headers)
    body = status_bytes(reason.code, str(refused))
    return web.Response(status=reason.status, body=body, content_type=PROTOBUF, headers=headers)
