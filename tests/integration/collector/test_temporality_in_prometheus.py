"""What becomes of delta and of cumulative values on the ways to a real Prometheus that take OTLP."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from contrib.capture.ports import free_ports
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from odradek.plugin import Forwarder, Origin, PluginConfig, Reject, TelemetryRecord
from odradek.testing.contracts.samples import Samples
from odradek_otlp import odradek_forwarder
from support.child_process import child_process
from support.prometheus_server import PrometheusServer, prometheus_server
from support.telemetry_records import telemetry_record
from support.waiting import wait_until

if TYPE_CHECKING:
    from integration.collector.conftest import WaitUntilItListens

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]
ROOT = Path(__file__).resolve().parents[3]
COUNTER = "org_apache_kafka_producer_record_send_total"
GAUGE = "org_apache_kafka_producer_record_send_rate"
PATIENCE_S = 120.0
S = 10**9


def pushes() -> list[TelemetryRecord]:
    """Three pushes of one client, with two records sent in each; its label has the name of an attribute."""
    begin_ns, records = time.time_ns() - 10 * S, []
    for number in range(3):
        data = MetricsData()
        entry = data.resource_metrics.add()
        for key, value in {"client_id": "orders", "topic": "static"}.items():
            entry.resource.attributes.add(key=key).value.string_value = value
        metrics = entry.scope_metrics.add().metrics
        total = metrics.add(name="org.apache.kafka.producer.record.send.total").sum
        total.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
        total.is_monotonic = True
        start_ns = begin_ns + number * S
        point = total.data_points.add(
            start_time_unix_nano=start_ns, time_unix_nano=start_ns + S, as_double=2.0
        )
        point.attributes.add(key="topic").value.string_value = "payments"
        gauge = metrics.add(name="org.apache.kafka.producer.record.send.rate").gauge
        gauge.data_points.add(time_unix_nano=start_ns + S, as_double=2.0)
        records.append(
            replace(telemetry_record(data.SerializeToString()), position=Origin("topic", 0, number))
        )
    return records


def forwarder(endpoint: str, file: Path | None) -> Forwarder:
    """A destination that gets totals if there is a file for them."""
    totals = {} if file is None else {"temporality": "cumulative", "totals.file": str(file)}
    found = odradek_forwarder(PluginConfig("plugins.otlp", {"endpoint": endpoint} | totals))
    assert isinstance(found, Forwarder)
    return found


async def deliver(endpoint: str, file: Path | None, records: Sequence[TelemetryRecord] = ()) -> None:
    """Deliver the pushes, one in a batch."""
    destination = forwarder(endpoint, file)
    await destination.start()
    try:
        for record in records or pushes():
            await destination.deliver([record])
    finally:
        await destination.close()


def series(prometheus: PrometheusServer, name: str) -> list[tuple[str | None, str | None, float]]:
    """The label ``topic``, the host's label of that name, and the value of each series."""
    return [
        (labels.get("topic"), labels.get("host_topic"), value) for labels, value in prometheus.query(name)
    ]


@pytest.fixture
def prometheus(prometheus_program: Path, tmp_path: Path) -> Iterator[PrometheusServer]:
    """As contrib configures it for OTLP, without the experimental conversion of deltas."""
    (port,) = free_ports(1)
    options = ("--web.enable-otlp-receiver", "--web.enable-remote-write-receiver")
    config = ROOT / "contrib/prometheus/otlp.yml"
    with prometheus_server(prometheus_program, config, port, tmp_path, *options) as server:
        yield server


def test_the_otlp_endpoint_of_prometheus_refuses_deltas_and_takes_totals(
    prometheus: PrometheusServer, tmp_path: Path
) -> None:
    endpoint = f"{prometheus.url}/api/v1/otlp"

    with pytest.raises(Reject, match="HTTP 500: invalid temporality"):
        asyncio.run(deliver(endpoint, None))
    refused = series(prometheus, COUNTER)
    asyncio.run(deliver(endpoint, tmp_path / "totals.db"))

    assert refused == []
    assert series(prometheus, COUNTER) == [("payments", "static", 6.0)]


SAME_NAMES = [
    {
        "topic": "orders",
        "node_id": "node-1",
        "client_id": "orders",
        "host_topic": "static",
        "broker_node_id": "1",
    },
    {"topic": "static", "node_id": "1", "client_id": "orders", "broker_node_id": "1"},
    {
        "topic": "static",
        "node_id": "1",
        "client_id": "orders",
        "host_topic": "static",
        "broker_node_id": "1",
        "host_client_id": "orders",
    },
]
"""The labels of the series of `Samples.with_same_names`."""


def of_samples(prometheus: PrometheusServer) -> list[dict[str, str]]:
    """The labels of the first metric of each sample of the contract."""
    found = prometheus.query('{__name__=~"contract_push_.+_0"}')
    rows = [{key: text for key, text in labels.items() if key != "job"} for labels, _ in found]
    return sorted(rows, key=lambda row: row.pop("__name__"))


def samples() -> list[TelemetryRecord]:
    """The samples of the contract whose labels have the names of attributes, with times of now."""
    records = []
    for record in Samples().with_same_names():
        data = MetricsData.FromString(record.payload.data)
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            metric.gauge.data_points[0].time_unix_nano = time.time_ns()
        records.append(telemetry_record(data.SerializeToString(), record.payload.client_instance_id))
    return records


def test_samples_of_the_contract_keep_both_labels(prometheus: PrometheusServer) -> None:
    asyncio.run(deliver(f"{prometheus.url}/api/v1/otlp", None, samples()))

    assert of_samples(prometheus) == SAME_NAMES


def test_a_collector_without_conversion_drops_deltas_and_writes_totals(
    prometheus: PrometheusServer,
    collector_program: Path,
    listening: WaitUntilItListens,
    tmp_path: Path,
) -> None:
    grpc_port, http_port = free_ports(2)
    environment = os.environ | {
        "PROMETHEUS": f"{prometheus.url}/api/v1/write",
        "OTLP_GRPC": f"127.0.0.1:{grpc_port}",
        "OTLP_HTTP": f"127.0.0.1:{http_port}",
    }
    shipped = [
        *("--config", str(ROOT / "contrib/otelcol/otlp.yaml")),
        "--set=service.pipelines.metrics.processors=[resource]",
        "--set=service.telemetry.metrics.level=none",
    ]
    endpoint = f"http://127.0.0.1:{http_port}"

    with ExitStack() as stack:
        process = stack.enter_context(
            child_process([collector_program, *shipped], tmp_path / "log", environment)
        )
        listening(process, http_port)
        asyncio.run(deliver(endpoint, None))
        wait_until(lambda: bool(series(prometheus, GAUGE)), "no gauge in Prometheus", PATIENCE_S)
        dropped = series(prometheus, COUNTER)
        asyncio.run(deliver(endpoint, tmp_path / "totals.db"))
        asyncio.run(deliver(endpoint, None, samples()))
        wait_until(lambda: bool(series(prometheus, COUNTER)), "no totals in Prometheus", PATIENCE_S)
        wait_until(lambda: series(prometheus, COUNTER)[0][2] == 6.0, "the total is wrong", PATIENCE_S)

        wait_until(lambda: len(of_samples(prometheus)) == 3, "no samples in Prometheus", PATIENCE_S)
        found = series(prometheus, COUNTER), of_samples(prometheus)

    assert dropped == []
    assert found == ([("payments", "static", 6.0)], SAME_NAMES)
