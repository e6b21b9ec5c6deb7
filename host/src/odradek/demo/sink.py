"""The OTLP endpoint of ``odradek demo``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.cli.client_view import data_points


class OtlpSink(ThreadingHTTPServer):
    """An OTLP/HTTP endpoint that counts requests and data points."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), OtlpSinkHandler)
        self.requests = 0
        self.data_points = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def take(self, body: bytes) -> None:
        """Count the data points of one export. Its request message has the same encoding as MetricsData."""
        self.requests += 1
        for resource_metrics in MetricsData.FromString(body).resource_metrics:
            for scope_metrics in resource_metrics.scope_metrics:
                self.data_points += data_points(scope_metrics.metrics)


class OtlpSinkHandler(BaseHTTPRequestHandler):
    """Answers POST /v1/metrics; accepts uncompressed bodies only."""

    protocol_version = "HTTP/1.1"
    server: OtlpSink

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.take(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Suppress the log line of each request."""


@contextmanager
def otlp_sink() -> Iterator[OtlpSink]:
    """Yield an OTLP endpoint that listens on a free port."""
    with OtlpSink() as sink:
        thread = threading.Thread(target=sink.serve_forever, name="otlp-sink", daemon=True)
        thread.start()
        try:
            yield sink
        finally:
            sink.shutdown()
            thread.join()
