"""A real OpenTelemetry collector reads exported topics, and writes topics for us, point for point."""

from __future__ import annotations

import asyncio
import http.client
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Exemplar,
    ExponentialHistogram,
    ExponentialHistogramDataPoint,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
    Summary,
    SummaryDataPoint,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

import odradek_kafka
from odradek.delivery.spooled_record import RecordFormat
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import PluginConfig, TelemetryRecord
from odradek.topic import TopicFormat
from odradek_kafka import odradek_forwarder
from support.forwarding import forwarding, until
from support.hosts import running_host
from support.spooling import FAST, FarSide, Plugin
from support.telemetry_records import telemetry_record
from support.waiting import wait_until

if TYPE_CHECKING:
    from integration.collector.conftest import Point, StartCollector

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_100)]
OTELCOL = Path(__file__).resolve().parents[3] / "contrib" / "otelcol"
DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
TIME_NS = 1_760_000_000_000_000_123
LARGEST = 2**63 - 1
PUSHES = 30
PATIENCE_S = 60.0


def attribute(key: str, **value: Any) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(**value))


def push(number: int) -> bytes:
    """Every kind of metric, attribute and exemplar."""
    times: dict[str, Any] = {"start_time_unix_nano": TIME_NS, "time_unix_nano": TIME_NS + number}
    exemplar = Exemplar(
        time_unix_nano=TIME_NS,
        as_double=0.5,
        trace_id=bytes(range(1, 17)),
        span_id=bytes(range(240, 248)),
        filtered_attributes=[attribute("topic", string_value="orders")],
    )
    whole = NumberDataPoint(as_int=LARGEST - number, exemplars=[exemplar], **times)
    real = NumberDataPoint(
        as_double=number + 0.25,
        attributes=[attribute("node_id", string_value="1"), attribute("flag", bool_value=True)],
        **times,
    )
    histogram = HistogramDataPoint(
        count=3, sum=4.5, min=0.0, max=3.5, bucket_counts=[1, 2], explicit_bounds=[1.5], **times
    )
    powers = ExponentialHistogramDataPoint(
        count=6,
        sum=9.5,
        scale=-1,
        zero_count=1,
        positive=ExponentialHistogramDataPoint.Buckets(offset=-2, bucket_counts=[1, 0, 3]),
        negative=ExponentialHistogramDataPoint.Buckets(offset=1, bucket_counts=[1]),
        **times,
    )
    quantile = SummaryDataPoint.ValueAtQuantile(quantile=0.99, value=7.5)
    summary = SummaryDataPoint(count=2, sum=9.0, quantile_values=[quantile], **times)
    metrics = [
        Metric(name="whole", unit="1", gauge=Gauge(data_points=[whole])),
        Metric(
            name="real",
            description="ü",
            sum=Sum(data_points=[real], aggregation_temporality=DELTA, is_monotonic=True),
        ),
        Metric(name="h", histogram=Histogram(data_points=[histogram], aggregation_temporality=DELTA)),
        Metric(
            name="e",
            exponential_histogram=ExponentialHistogram(data_points=[powers], aggregation_temporality=DELTA),
        ),
        Metric(name="s", summary=Summary(data_points=[summary])),
    ]
    racks = ArrayValue(values=[AnyValue(string_value="r1"), AnyValue(int_value=7)])
    resource = Resource(
        attributes=[
            attribute("client_id", string_value=f"client-{number % 3}"),
            attribute("racks", array_value=racks),
            attribute("raw", bytes_value=b"\x00\xff"),
        ]
    )
    scope = ScopeMetrics(
        scope=InstrumentationScope(name="rdkafka#producer-1", version="2.16.0"), metrics=metrics
    )
    return MetricsData(
        resource_metrics=[ResourceMetrics(resource=resource, scope_metrics=[scope])]
    ).SerializeToString()


def record_of(number: int) -> TelemetryRecord:
    return telemetry_record(push(number), bytes([number % 3 + 1]) * 16)


def export(bootstrap: str, topic: str, encoding: str) -> None:
    table = {"bootstrap.servers": bootstrap, "topic": topic, "encoding": encoding}
    forwarder = odradek_forwarder(PluginConfig("plugins.kafka", table))
    assert forwarder is not None

    async def run() -> None:
        await forwarder.start()
        await forwarder.deliver([record_of(number) for number in range(PUSHES)])
        await forwarder.close()

    asyncio.run(run())


def receivers() -> str:
    """The exporters of ``kafka.yaml``, for use in another configuration."""
    found = yaml.safe_load((OTELCOL / "kafka.yaml").read_text(encoding="utf-8"))["receivers"]
    return textwrap.indent(yaml.safe_dump(found), "  ")


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_the_collector_reads_every_pushed_point(
    start_collector: StartCollector,
    points: Callable[[MetricsData], Counter[Point]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    encoding: str,
) -> None:
    wanted: Counter[Point] = Counter()
    for number in range(PUSHES):
        wanted += points(MetricsData.FromString(push(number)))

    with running_host(tmp_path / "data") as host:
        export(host.bootstrap, "exported", encoding)
        for name, value in {"KAFKA": host.bootstrap, "TOPIC": "exported", "ENCODING": encoding}.items():
            monkeypatch.setenv(name, value)
        with start_collector(receivers=receivers(), names="kafka") as collector:
            collector.wait_for(wanted)

    assert wanted.total() == PUSHES * 5


EXPORTER = """
  kafka:
    brokers: ["{brokers}"]
    metrics:
      topic: otlp_metrics
      encoding: {encoding}
"""


def send(port: int, data: bytes) -> None:
    """Send a request over OTLP/HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("POST", "/v1/metrics", data, {"Content-Type": "application/x-protobuf"})
        assert connection.getresponse().status == 200
    finally:
        connection.close()


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_a_host_and_a_forwarder_read_what_the_collector_wrote(
    start_collector: StartCollector,
    points: Callable[[MetricsData], Counter[Point]],
    tmp_path: Path,
    encoding: str,
) -> None:
    clients = [0, 1, 2]
    request = b"".join(push(number) for number in clients)
    far_side, beside, plugins = FarSide(), FarSide(), HostPluginManager()
    plugins.add("kafka", odradek_kafka, "odradek-kafka", "1")
    plugins.add("fake", Plugin({"all": far_side}), "fake", "1")
    with running_host(tmp_path / "cluster", "group.initial.rebalance.delay.ms=0") as cluster:
        exporter = EXPORTER.format(brokers=cluster.bootstrap, encoding=encoding)
        with start_collector(exporters=exporter, to="kafka") as collector:
            send(collector.http_port, request)
            source = [
                f"plugins.kafka.source.bootstrap.servers={cluster.bootstrap}",
                "plugins.kafka.source.topics=otlp_metrics",
                f"plugins.kafka.source.format={encoding}",
                "plugins.kafka.source.client.topic.metadata.refresh.interval.ms=500",
            ]
            with running_host(tmp_path / "host", *FAST, *source, plugins=plugins):
                wait_until(lambda: len(far_side.taken) >= len(clients), lambda: far_side.taken, PATIENCE_S)
            reading = {"topic": "otlp_metrics", "record_format": RecordFormat(name=TopicFormat(encoding))}
            with forwarding(cluster.bootstrap, beside, **reading) as process:
                until(lambda: len(beside.taken) >= len(clients), process)

    for taken in (far_side.taken, beside.taken):
        found: Counter[Point] = Counter()
        for record in taken:
            found += points(MetricsData.FromString(record.payload.data))
        assert found == points(MetricsData.FromString(request))
        assert sorted(record.context.client_id or "" for record in taken) == [
            f"client-{number}" for number in clients
        ]
        assert {(record.source, record.labeled) for record in taken} == {("kafka", True)}
