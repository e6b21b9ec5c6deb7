"""One push, three ways to Prometheus: a collector, remote write and a scrape give the same series.

Their totals are those that the clients have themselves when they close.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from contrib.capture.ports import free_ports
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from integration.java.jvm import Jvm, built_classpath
from odradek.findings.node_names import node_name
from odradek.plugin import ClientTelemetryPayload, RequestContext
from support.accounts import is_at_rest
from support.child_process import child_process
from support.client_totals import Key, check_totals, closed_clients, series_name
from support.hosts import ThreadedHost, running_host
from support.prometheus_server import PrometheusServer, prometheus_server
from support.waiting import wait_until

if TYPE_CHECKING:
    from integration.collector.conftest import WaitUntilItListens

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1_500)]
ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 120.0
CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: scrape
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""
HOST = """
[subscriptions.all]
metrics = ["*"]
"interval.ms" = 1000

[plugins.enrich.static]
topic = "static"   # the name of an attribute of data points

[plugins.otlp]
endpoint = "http://127.0.0.1:{collector}"
temporality = "cumulative"
"totals.file" = "{folder}/collector.db"
"batch.max.age.ms" = 50

[plugins.prometheus]
listener = "http://127.0.0.1:{scraped}"
"totals.file" = "{folder}/scrape.db"
"batch.max.age.ms" = 50
remote_write.url = "{prometheus}/api/v1/write"
remote_write."totals.file" = "{folder}/remote-write.db"
"""
PATHS = {"collector": 'path="collector"', "remote write": 'job="kafka-clients"', "scrape": 'job="scrape"'}
LABELS = (
    *("client_id", "client_instance_id", "principal", "client_software_name", "client_software_version"),
    *("group_id", "topic", "partition", "node_id"),
)
"""Those that dashboards use."""
LIBRDKAFKA = "librdkafka-producer"
NODE = re.compile(r"node_id=(node-[^,]+)")
Series = tuple[str, ...]


class Pushed:
    """A plugin that adds up the deltas of a librdkafka client."""

    def __init__(self) -> None:
        self.totals: dict[Key, float] = {}

    def client_receiver(self) -> Pushed:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if context.client_id != LIBRDKAFKA:
            return
        for entry in MetricsData.FromString(payload.data).resource_metrics:
            for scope in entry.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.sum.data_points:
                        key = series_name(metric.name), ""
                        self.totals[key] = self.totals.get(key, 0) + point.as_int


@contextmanager
def librdkafka_producer(host: ThreadedHost, prometheus: PrometheusServer) -> Iterator[None]:
    """A producer that pushes, and has to connect again."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": host.bootstrap, "client.id": LIBRDKAFKA, "log_level": 2}
    )
    try:
        producer.produce("orders", b"value")
        producer.flush(PATIENCE_S)
        connections = f'org_apache_kafka_producer_connection_creation_total{{client_id="{LIBRDKAFKA}"}}'
        wait_until(lambda: prometheus.query(connections), "no push of librdkafka", PATIENCE_S)
        host.call(lambda: hang_up(host))
        yield
        producer.produce("orders", b"value")
        producer.flush(PATIENCE_S)
        wait_until(lambda: any(value for _, value in prometheus.query(connections)), "no connection")
    finally:
        producer.close()


def hang_up(host: ThreadedHost) -> None:
    """Close all connections. Runs on the host's loop."""
    for listener in host.host.listeners:
        for channel in list(listener.channels):
            channel.drain()


def with_node_numbers(totals: Mapping[Key, float]) -> dict[Key, float]:
    """The totals with the node ids of odradek-prometheus: a number in place of Java's text."""
    return {
        (name, NODE.sub(lambda found: f"node_id={node_name(found[1])}", labels)): value
        for (name, labels), value in totals.items()
    }


def gauges(prometheus: PrometheusServer, path: str) -> dict[Series, float]:
    """The last value of each gauge of the clients that came on one way."""
    names = '{__name__=~"org_apache_kafka_.+",__name__!~".+_total",' + PATHS[path] + "}"
    found = {}
    for labels, value in prometheus.query(f"last_over_time({names}[5m])"):
        labels["node_id"] = node_name(labels.get("node_id", ""))
        found[(labels["__name__"], *(labels.get(name, "") for name in LABELS))] = value
    return found


def different(prometheus: PrometheusServer, path: str) -> dict[Series, Any]:
    """Gauges that differ from those of the collector, which keeps those without a value, as NaN."""
    expected = {series: value for series, value in gauges(prometheus, "collector").items() if value == value}
    found = gauges(prometheus, path)
    return {
        series: (expected.get(series), found.get(series))
        for series in expected.keys() | found.keys()
        if expected.get(series) != found.get(series) and (series in expected or path != "scrape")
    }


def test_the_three_paths_agree(
    collector_program: Path,
    prometheus_program: Path,
    listening: WaitUntilItListens,
    tmp_path: Path,
) -> None:
    jvm = Jvm(built_classpath())
    port, scraped, grpc_port, http_port = free_ports(4)
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(port=scraped))

    with ExitStack() as stack:
        prometheus = stack.enter_context(
            prometheus_server(
                prometheus_program, config, port, tmp_path, "--web.enable-remote-write-receiver"
            )
        )
        environment = os.environ | {
            "PROMETHEUS": f"{prometheus.url}/api/v1/write",
            "OTLP_GRPC": f"127.0.0.1:{grpc_port}",
            "OTLP_HTTP": f"127.0.0.1:{http_port}",
        }
        command: list[str | Path] = [
            collector_program,
            f"--config={ROOT / 'contrib/otelcol/otlp.yaml'}",
            "--set=service.pipelines.metrics.processors=[resource]",
            "--set=exporters.prometheus_remote_write.external_labels.path=collector",
            "--set=service.telemetry.metrics.level=none",
        ]
        collector = stack.enter_context(child_process(command, tmp_path / "collector.log", environment))
        listening(collector, http_port)
        file = tmp_path / "odradek.toml"
        file.write_text(
            HOST.format(collector=http_port, scraped=scraped, prometheus=prometheus.url, folder=tmp_path)
        )
        host = stack.enter_context(running_host(tmp_path / "data", file=file))

        librdkafka = Pushed()
        host.call(lambda: host.host.receivers.register("pushed", librdkafka))
        with librdkafka_producer(host, prometheus):
            expected = closed_clients(jvm, host, prometheus)
        wait_until(lambda: host.call(lambda: is_at_rest(host.host)), "a client or a push is left", PATIENCE_S)
        expected[LIBRDKAFKA] = librdkafka.totals

        check_totals(expected, prometheus, PATHS["collector"])
        numbered = {client_id: with_node_numbers(totals) for client_id, totals in expected.items()}
        for path in ("remote write", "scrape"):
            check_totals(numbered, prometheus, PATHS[path])
            wait_until(lambda path=path: not different(prometheus, path), path, PATIENCE_S)  # type: ignore[misc]
        for path, matcher in PATHS.items():
            topics = {
                (labels.get("topic"), labels.get("host_topic"))
                for labels, _ in prometheus.query(
                    "last_over_time(org_apache_kafka_producer_topic_record_send_total{" + matcher + "}[5m])"
                )
            }
            assert topics == {("orders", "static")}, path
