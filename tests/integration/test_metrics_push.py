"""The host's own metrics, over OTLP/HTTP to a small server and for Prometheus."""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from prometheus_client.parser import text_string_to_metric_families

from odradek import __version__
from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from support.child_process import same_imports
from support.hosts import ThreadedHost, running_host
from support.probes import get, metrics_port
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

ENTITIES = (
    ClientQuotaEntity(user="alice"),
    ClientQuotaEntity(user="bob", client_id="app"),
    ClientQuotaEntity(client_id=DEFAULT),
)
CLIENTS = (("alice", "app"), ("bob", "app"), ("carol", "web"))
CLOSED_PORT = "http://127.0.0.1:9"


class Collector(ThreadingHTTPServer):
    """A server that stores posted requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Posted)
        self.pushes: queue.Queue[tuple[str, dict[str, str], ExportMetricsServiceRequest]] = queue.Queue()
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next_metrics(self) -> dict[str, Metric]:
        """Wait for the next push."""
        _, _, push = self.pushes.get(timeout=10)
        (resource,) = push.resource_metrics
        return {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}


class Posted(BaseHTTPRequestHandler):
    """One request."""

    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        push = ExportMetricsServiceRequest.FromString(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.pushes.put((self.path, headers, push))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Write no access log."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def push_to(endpoint: str, interval_ms: int = 100) -> tuple[str, ...]:
    return (f"metrics.otlp.endpoint={endpoint}", f"metrics.otlp.interval.ms={interval_ms}")


def use_quotas(host: ThreadedHost) -> None:
    """Three quotas whose tags differ."""
    quotas, now_ms = host.host.broker.quotas, host.host.clock.monotonic_ms()
    for entity in ENTITIES:
        quotas.apply(entity, {"producer_byte_rate": 1.0})
    for user, client_id in CLIENTS:
        quotas.produce.record_and_throttle_ms(user, client_id, 100, now_ms)


def test_metrics_are_pushed_to_a_collector(tmp_path: Path, collector: Collector) -> None:
    headers = "metrics.otlp.headers=authorization=Bearer abc, x-team=kafka"
    with running_host(tmp_path, *push_to(collector.url), headers) as host:
        host.call(lambda: use_quotas(host))
        path, sent, push = collector.pushes.get(timeout=10)
        for _ in range(2):  # the first may be on its way already
            metrics = collector.next_metrics()

    assert path == "/v1/metrics"
    assert (sent["authorization"], sent["x-team"]) == ("Bearer abc", "kafka")
    (resource,) = push.resource_metrics
    assert {row.key: row.value.string_value for row in resource.resource.attributes} == {
        "service.name": "odradek",
        "service.version": __version__,
        "service.instance.id": socket.gethostname(),
    }
    assert metrics["odradek.up"].gauge.data_points[0].as_int == 1
    assert metrics["odradek.connections.accepted"].sum.is_monotonic
    tags = [
        {row.key: row.value.string_value for row in point.attributes}
        for point in metrics["kafka.server.produce.byte.rate"].gauge.data_points
    ]
    cluster = {"cluster.name": host.host.broker.cluster_id}
    clients = [{"user": "alice"}, {"user": "bob", "client_id": "app"}, {"client_id": "web"}]
    assert tags == [each | cluster for each in clients]


def test_a_stopping_host_pushes_its_metrics_once_more(tmp_path: Path, collector: Collector) -> None:
    with running_host(tmp_path, *push_to(collector.url, 600_000)) as host, WireClient(host.address) as client:
        client.introduce()

    (point,) = collector.next_metrics()["odradek.connections.accepted"].sum.data_points
    assert point.as_int == 1


@pytest.mark.parametrize("status", [400, 503])
def test_a_push_refused_by_the_collector_is_repeated(
    tmp_path: Path, collector: Collector, status: int
) -> None:
    collector.status = status
    with running_host(tmp_path, *push_to(collector.url)) as host, WireClient(host.address) as client:
        first = collector.next_metrics()
        second = collector.next_metrics()
        client.introduce()

    assert first.keys() & second.keys() >= {"odradek.up", "odradek.connections"}


def test_a_collector_that_is_down_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_host(tmp_path, *push_to(CLOSED_PORT)) as host, WireClient(host.address) as client:
        until_s = time.monotonic() + 10
        while "Failed to export metrics" not in caplog.text and time.monotonic() < until_s:
            client.introduce()
        failed = "Failed to export metrics" in caplog.text
        client.introduce()

    assert failed
    assert host.host.dispatcher.unexpected_errors == 0


def test_a_collector_that_never_answers_does_not_delay_the_stop(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with running_host(tmp_path, *push_to(endpoint, 600_000), "shutdown.timeout.ms=200"):
            begin_s = time.monotonic()
        took_s = time.monotonic() - begin_s

    assert took_s < 5  # half of the exporter's time limit for an answer


def test_without_an_endpoint_the_exporter_is_not_imported(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from support.hosts import running_host\n"
        "with running_host(Path(sys.argv[1])): pass\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'prometheus_client'))])"
    )
    environment = same_imports()
    command = [sys.executable, "-c", program, str(tmp_path)]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert done.stdout == "[]\n", done.stderr


def test_prometheus_reads_a_metric_with_different_labels_as_one(tmp_path: Path) -> None:
    with running_host(tmp_path, "metrics.listener=http://127.0.0.1:0") as host:
        host.call(lambda: use_quotas(host))
        _, text = get(metrics_port(host), "/metrics")

    kinds = Counter(line.split()[2] for line in text.splitlines() if line.startswith("# TYPE "))
    assert [name for name, count in kinds.items() if count > 1] == []
    families = {family.name: family for family in text_string_to_metric_families(text)}
    rates = families["kafka_server_produce_byte_rate_bytes_per_second"].samples
    assert [(row.labels["user"], row.labels["client_id"]) for row in rates] == [
        ("alice", ""), ("bob", "app"), ("", "web")
    ]  # fmt: skip
