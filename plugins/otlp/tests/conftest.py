"""Scripted endpoints on the loopback interface, and pushes to send them."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio
import pytest
import zstandard
from aiohttp import web
from google.protobuf.any_pb2 import Any
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.plugin import ClientTelemetryPayload, TelemetryRecord
from odradek.testing import request_context
from support.accepting import waiting_connections_are_made


def record_of(client_id: str, *names: str, instance_id: bytes = bytes(16)) -> TelemetryRecord:
    """A push of gauges, labeled with its client id."""
    data = MetricsData(
        resource_metrics=[
            ResourceMetrics(
                resource=Resource(
                    attributes=[KeyValue(key="client_id", value=AnyValue(string_value=client_id))]
                ),
                scope_metrics=[ScopeMetrics(metrics=[gauge(name) for name in names])],
            )
        ]
        if names
        else []
    )
    payload = ClientTelemetryPayload(instance_id, terminating=False, data=data.SerializeToString())
    return TelemetryRecord(request_context(client_id=client_id), 1_000, payload)


def gauge(name: str) -> Metric:
    return Metric(name=name, gauge=Gauge(data_points=[NumberDataPoint(as_double=1.5)]))


@dataclass(kw_only=True)
class Answer:
    """The reaction of an endpoint to one request."""

    status: int = 200
    code: grpc.StatusCode | None = None
    """The gRPC status; None is success."""
    message: str = ""
    body: bytes = b""
    content_type: str = "application/x-protobuf"
    headers: dict[str, str] = field(default_factory=dict)
    trailing: tuple[tuple[str, bytes], ...] = ()
    delay_s: float = 0
    cut: bool = False
    """Close the connection in the middle of the answer."""
    meanwhile: Callable[[], object] = lambda: None
    """Called before the answer."""


@dataclass
class Sink:
    """An endpoint; answers success after the end of its script."""

    port: int = 0
    script: list[Answer] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    """The bodies of all requests, decompressed."""
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    judge: Callable[[bytes], Answer] = lambda body: Answer()
    """The answer after the end of the script."""

    def next(self) -> Answer:
        answer = self.script.pop(0) if self.script else self.judge(self.bodies[-1])
        answer.meanwhile()
        return answer

    def requests(self) -> list[ExportMetricsServiceRequest]:
        return [ExportMetricsServiceRequest.FromString(body) for body in self.bodies]


UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": lambda body: body,
    "gzip": gzip.decompress,
    "zstd": lambda body: zstandard.ZstdDecompressor().decompress(body),
}


@asynccontextmanager
async def http_endpoint(*script: Answer, port: int = 0, tls: ServerTls | None = None) -> AsyncIterator[Sink]:
    sink = Sink(script=list(script))

    async def post(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        sink.bodies.append(UNPACK[request.headers.get("content-encoding", "")](body))
        sink.paths.append(request.path)
        sink.headers.append({name.lower(): value for name, value in request.headers.items()})
        answer = sink.next()
        await asyncio.sleep(answer.delay_s)
        if answer.cut:
            response = web.StreamResponse(headers={"Content-Length": "1000"})
            await response.prepare(request)
            await response.write(b"half")
            assert request.transport is not None
            request.transport.close()
            return response
        return web.Response(
            status=answer.status,
            body=answer.body or answer.message.encode(),
            headers=answer.headers | {"Content-Type": answer.content_type},
        )

    application = web.Application(handler_args={"auto_decompress": False}, client_max_size=1 << 26)
    application.router.add_post("/{path:.*}", post)
    runner = web.AppRunner(application, shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls.context() if tls else None)
    await site.start()
    sink.port = runner.addresses[0][1]
    try:
        yield sink
    finally:
        await waiting_connections_are_made()
        await runner.cleanup()


@asynccontextmanager
async def grpc_endpoint(*script: Answer, port: int = 0, tls: ServerTls | None = None) -> AsyncIterator[Sink]:
    sink = Sink(script=list(script))

    async def export(body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        sink.bodies.append(body)
        sink.headers.append({str(key): str(value) for key, value in context.invocation_metadata() or ()})
        answer = sink.next()
        await asyncio.sleep(answer.delay_s)
        if answer.code is not None:
            await context.abort(answer.code, answer.message, answer.trailing)
        return answer.body

    export_handler = grpc.unary_unary_rpc_method_handler(export)
    service = "opentelemetry.proto.collector.metrics.v1.MetricsService"
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {"Export": export_handler}),)
    )
    address = f"127.0.0.1:{port}"
    sink.port = server.add_secure_port(address, tls.grpc()) if tls else server.add_insecure_port(address)
    await server.start()
    try:
        yield sink
    finally:
        await server.stop(0)


def retry_details(seconds: int, nanos: int) -> bytes:
    """A ``google.rpc.Status`` with a ``RetryInfo``, encoded by hand."""
    delay = b"\x08" + bytes([seconds]) + b"\x10" + varint(nanos)
    retry_info = b"\x0a" + bytes([len(delay)]) + delay
    detail = Any(type_url="type.googleapis.com/google.rpc.RetryInfo", value=retry_info).SerializeToString()
    return b"\x08\x08\x12\x04busy\x1a" + bytes([len(detail)]) + detail


def varint(number: int) -> bytes:
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


@dataclass(frozen=True, kw_only=True)
class ServerTls:
    """The TLS files of an endpoint."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """Clients must have a certificate of this CA."""

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        if self.client_ca:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def grpc(self) -> grpc.ServerCredentials:
        return grpc.ssl_server_credentials(
            [(self.key.read_bytes(), self.certificate.read_bytes())],
            self.client_ca.read_bytes() if self.client_ca else None,
            require_client_auth=self.client_ca is not None,
        )


Endpoint = Callable[..., AbstractAsyncContextManager[Sink]]


@dataclass(frozen=True)
class Kit:
    """Helpers for the tests; tests do not import each other's files."""

    record: Callable[..., TelemetryRecord] = record_of
    answer: type[Answer] = Answer
    http: Endpoint = http_endpoint
    grpc: Endpoint = grpc_endpoint
    tls: type[ServerTls] = ServerTls
    retry_details: Callable[[int, int], bytes] = retry_details


@pytest.fixture
def kit() -> Kit:
    return Kit()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove variables of this machine that would affect the tests."""
    for signal in ("", "METRICS_"):
        for name in ("ENDPOINT", "PROTOCOL", "HEADERS", "COMPRESSION", "TIMEOUT", "INSECURE"):
            monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{signal}{name}", raising=False)
