#!/usr/bin/env python3
"""Record requests of real senders of OTLP/HTTP, for ``odradek.testing.pushes``.

    python -m contrib.capture.otlp_senders         # from the repository's root; about ten seconds

The senders are OpenTelemetry's SDK for Python, with totals and with deltas, and the SDK for Go in the
collector of ``contrib/otelcol``, which sends its own metrics. The recording of a sender that cannot be run is
not changed.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread

from contrib.go_program import UnavailableError
from contrib.otelcol.collector import COLLECTOR
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

DATA = Path(__file__).resolve().parents[2] / "host/src/odradek/testing/pushes/data/otlp"
REQUESTS = 4
PATIENCE_S = 30
COLLECTOR_CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0"}}}}}}}}
exporters: {{debug: {{}}}}
service:
  pipelines: {{metrics: {{receivers: [otlp], exporters: [debug]}}}}
  telemetry:
    metrics:
      level: detailed
      readers:
        - periodic:
            interval: 1000
            exporter: {{otlp: {{protocol: http/protobuf, endpoint: "{}", compression: gzip}}}}
"""


class Receiver(HTTPServer):
    """Accepts everything, and keeps what it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.rows: Queue[dict[str, object]] = Queue()
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/metrics"


class Handler(BaseHTTPRequestHandler):
    """One connection of a sender."""

    server: Receiver
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = b"".join(self.parts())
        self.server.rows.put(
            {
                "received_ms": time.time_ns() // 1_000_000,
                "encoding": self.headers.get("Content-Encoding", "identity"),
                "body": base64.b64encode(body).decode(),
            }
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def parts(self) -> Iterator[bytes]:
        """The parts of the body: one, or chunks."""
        length = self.headers["Content-Length"]
        if length is not None:
            yield self.rfile.read(int(length))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def log_message(self, *_arguments: object) -> None:
        return None


def python_sdk(url: str, compression: Compression, temporality: AggregationTemporality) -> None:
    """A program with some instruments, which exports them a few times."""
    kinds: dict[type, AggregationTemporality] = {Counter: temporality, Histogram: temporality}
    exporter = OTLPMetricExporter(endpoint=url, compression=compression, preferred_temporality=kinds)
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=float("inf"))
    resource = Resource.create({"service.name": "checkout", "service.instance.id": "checkout-1"})
    provider = MeterProvider([reader], resource)
    meter = provider.get_meter("checkout.orders", "1.4.0")
    orders = meter.create_counter("orders", "{order}", "Orders that were accepted")
    waiting = meter.create_up_down_counter("orders.waiting", "{order}")
    duration = meter.create_histogram("http.server.request.duration", "s")
    for number in range(REQUESTS):
        for method in ("GET", "POST"):
            orders.add(number + 1, {"method": method})
            duration.record(0.05 * number, {"http.request.method": method, "http.route": "/orders"})
        waiting.add(1)
        reader.collect()
    provider.shutdown()


def collector(url: str) -> None:
    """A collector, which tells its own metrics once a second.

    Raises:
        UnavailableError: It cannot be built.
    """
    program = COLLECTOR.path()
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "collector.yaml"
        file.write_text(COLLECTOR_CONFIG.format(url), encoding="utf-8")
        running = subprocess.Popen([program, "--config", file], stderr=subprocess.DEVNULL)
        time.sleep(REQUESTS + 1.5)
        running.terminate()
        running.wait(PATIENCE_S)


SENDERS: dict[str, Callable[[str], None]] = {
    "opentelemetry-python": lambda url: python_sdk(url, Compression.Gzip, AggregationTemporality.CUMULATIVE),
    "opentelemetry-python-delta": lambda url: python_sdk(
        url, Compression.NoCompression, AggregationTemporality.DELTA
    ),
    "opentelemetry-go": collector,
}


def main() -> int:
    for name, send in SENDERS.items():
        receiver = Receiver()
        try:
            send(receiver.url)
        except UnavailableError as error:
            sys.stderr.write(f"{name}: {error}\n")
            continue
        rows = [receiver.rows.get(timeout=PATIENCE_S) for _ in range(REQUESTS)]
        receiver.shutdown()
        receiver.server_close()
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (DATA / f"{name}.jsonl").write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}: {len(rows)} requests\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
