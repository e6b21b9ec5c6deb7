"""The OTLP plugin driven by the host: from the queue over the network, to an endpoint that is sometimes
down.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import pytest
from contrib.capture.ports import free_port
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, ResourceMetrics, ScopeMetrics

from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.plugin import (
    Forwarder,
    PluginConfig,
    TelemetryRecord,
)
from odradek_otlp import odradek_forwarder
from support.telemetry_records import telemetry_record
from support.waiting import wait_until

PATIENCE_S = 15.0
PUSHES = 200
SETTINGS = ForwarderSettings(
    batch_max_records=40,
    batch_max_age_ms=20,
    retry_backoff_ms=20,
    retry_backoff_max_ms=100,
    retry_max_attempts=0,
)

POISON = "metric.617"
"""The endpoints refuse a request with this metric permanently."""


def record_of(number: int, instance_id: bytes = bytes(16)) -> TelemetryRecord:
    scope = ScopeMetrics(metrics=[Metric(name=f"metric.{number}")])
    data = MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[scope])]).SerializeToString()
    return telemetry_record(data, instance_id)


@contextmanager
def http_endpoint(port: int, bodies: list[bytes]) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        """HTTP/1.0: a kept-alive connection would be served while the endpoint is down."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            refused = POISON.encode() in body
            if not refused:
                bodies.append(body)
            self.send_response(400 if refused else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Write no access log."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def grpc_endpoint(port: int, bodies: list[bytes]) -> Iterator[None]:
    def export(body: bytes, context: grpc.ServicerContext) -> bytes:
        if POISON.encode() in body:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "bad metric")
        bodies.append(body)
        return b""

    service = "opentelemetry.proto.collector.metrics.v1.MetricsService"
    handlers = {"Export": grpc.unary_unary_rpc_method_handler(export)}
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool, [grpc.method_handlers_generic_handler(service, handlers)])
        server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        try:
            yield
        finally:
            server.stop(0).wait()


ENDPOINTS = {"http/protobuf": http_endpoint, "grpc": grpc_endpoint}


@contextmanager
def running(table: Mapping[str, object], settings: ForwarderSettings = SETTINGS) -> Iterator[ForwarderRunner]:
    forwarder = odradek_forwarder(PluginConfig("plugins.otlp", table))
    assert isinstance(forwarder, Forwarder)
    runner = ForwarderRunner("otlp", forwarder, settings)
    runner.start()
    try:
        yield runner
    finally:
        runner.stop(2.0)
        assert runner.stats().balanced
        assert runner.thread is not None
        assert not runner.thread.is_alive()


def until(runner: ForwarderRunner, condition: Callable[[ForwarderStats], bool]) -> None:
    """Wait for a condition; the accounting must be balanced at every check."""

    def holds() -> bool:
        stats = runner.stats()
        assert stats.balanced
        return condition(stats)

    wait_until(holds, runner.stats)


def settled(stats: ForwarderStats) -> bool:
    return stats.queued + stats.in_flight == 0


def names_of(bodies: list[bytes]) -> list[str]:
    return [
        metric.name
        for body in bodies
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_pushes_arrive_merged_and_in_order(protocol: str) -> None:
    bodies: list[bytes] = []
    port = free_port()

    with (
        ENDPOINTS[protocol](port, bodies),
        running({"endpoint": f"http://127.0.0.1:{port}", "protocol": protocol}) as runner,
    ):
        for number in range(PUSHES):
            runner.offer(record_of(number))
        until(runner, settled)

    assert names_of(bodies) == [f"metric.{number}" for number in range(PUSHES)]
    assert len(bodies) <= PUSHES / 10
    assert runner.stats().delivered == PUSHES


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_pushes_wait_for_an_endpoint_that_is_down_at_first_and_again_later(protocol: str) -> None:
    bodies: list[bytes] = []
    port = free_port()

    with running({"endpoint": f"http://127.0.0.1:{port}", "protocol": protocol}) as runner:
        for number in range(PUSHES):
            if number == PUSHES // 2:
                until(runner, lambda stats: stats.retries > 0)
                with ENDPOINTS[protocol](port, bodies):
                    until(runner, settled)
            runner.offer(record_of(number))
        seen = runner.stats().retries
        until(runner, lambda stats: stats.retries > seen)
        with ENDPOINTS[protocol](port, bodies):
            until(runner, settled)

    assert names_of(bodies) == [f"metric.{number}" for number in range(PUSHES)]
    assert runner.stats().dropped == {}


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_one_bad_push_in_a_thousand_is_found_with_several_requests_in_flight(protocol: str) -> None:
    bodies: list[bytes] = []
    port = free_port()
    large = dataclasses.replace(SETTINGS, batch_max_records=160)

    with (
        ENDPOINTS[protocol](port, bodies),
        running({"endpoint": f"http://127.0.0.1:{port}", "protocol": protocol}, large) as runner,
    ):
        for number in range(1_000):
            runner.offer(record_of(number, instance_id=number.to_bytes(16)))
        until(runner, settled)

    assert sorted(names_of(bodies)) == sorted(f"metric.{number}" for number in range(1_000) if number != 617)
    assert sum(runner.stats().rejected.values()) == 1
    assert runner.stats().delivered == 999
