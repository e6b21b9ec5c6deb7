"""The configurations of contrib/otelcol, unchanged: a collector accepts them, and Prometheus gets its
series.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import snappy
from contrib.capture.ports import free_ports
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from odradek.plugin import (
    PluginConfig,
    TelemetryRecord,
)
from odradek_otlp import odradek_forwarder
from odradek_otlp.otlp_forwarder import OtlpForwarder
from support.child_process import child_process
from support.telemetry_records import telemetry_record

if TYPE_CHECKING:
    from integration.collector.conftest import WaitUntilItListens

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_100)]
FOLDER = Path(__file__).resolve().parents[3] / "contrib" / "otelcol"
PATIENCE_S = 20.0


@pytest.mark.parametrize("name", ["otlp.yaml", "kafka.yaml"])
def test_a_collector_accepts_the_configuration(collector_program: Path, name: str) -> None:
    done = subprocess.run(
        [collector_program, "validate", "--config", FOLDER / name],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


@contextmanager
def prometheus() -> Iterator[tuple[int, list[bytes]]]:
    """The port of a remote-write endpoint, and the decompressed requests to it."""
    written: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            written.append(snappy.uncompress(body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Write no access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port, written
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def push(number: int) -> TelemetryRecord:
    """A delta of two sent records, with a label of the host."""
    data = MetricsData()
    entry = data.resource_metrics.add()
    entry.resource.attributes.add(key="client_id").value.string_value = "orders"
    metric = entry.scope_metrics.add().metrics.add(name="org.apache.kafka.producer.record.send.total")
    metric.sum.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
    metric.sum.is_monotonic = True
    begin_ns = time.time_ns() - 10 * 10**9 + number * 10**9
    metric.sum.data_points.add(start_time_unix_nano=begin_ns, time_unix_nano=begin_ns + 10**9, as_double=2.0)
    return telemetry_record(data.SerializeToString())


async def deliver(port: int) -> None:
    table = {"endpoint": f"http://127.0.0.1:{port}"}
    forwarder = odradek_forwarder(PluginConfig("plugins.otlp", table))
    assert isinstance(forwarder, OtlpForwarder)
    await forwarder.start()
    for number in range(3):
        await forwarder.deliver([push(number)])
    await forwarder.close()


def test_deltas_become_totals_in_prometheus_with_the_labels_of_the_host(
    collector_program: Path, listening: WaitUntilItListens, tmp_path: Path
) -> None:
    grpc_port, http_port = free_ports(2)
    total_of_three = b"\x09\x00\x00\x00\x00\x00\x00\x18\x40"  # Sample.value, a double: 6.0

    with prometheus() as (port, written):
        environment = os.environ | {
            "PROMETHEUS": f"http://127.0.0.1:{port}/api/v1/write",
            "OTLP_GRPC": f"127.0.0.1:{grpc_port}",
            "OTLP_HTTP": f"127.0.0.1:{http_port}",
        }
        config = ["--config", str(FOLDER / "otlp.yaml"), "--set=service.telemetry.metrics.level=none"]
        with child_process([collector_program, *config], tmp_path / "log", environment) as process:
            listening(process, http_port)
            asyncio.run(deliver(http_port))
            end_s = time.monotonic() + PATIENCE_S
            while not any(total_of_three in body for body in written) and time.monotonic() < end_s:
                time.sleep(0.05)

    (series,) = [body for body in written if total_of_three in body]
    assert b"org_apache_kafka_producer_record_send_total" in series
    assert b"client_id" in series
    assert b"orders" in series
