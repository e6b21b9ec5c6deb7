"""A real collector receives the points that clients pushed, plus labels, point for point."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.metrics.v1.metrics_pb2 import Exemplar, Metric, MetricsData, ScopeMetrics

from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import encode_labels
from odradek.plugin import (
    ClientTelemetryPayload,
    PluginConfig,
    RequestContext,
    TelemetryRecord,
)
from odradek.programs.host import Host
from odradek.telemetry.payload import label
from odradek_otlp import odradek_forwarder
from odradek_otlp.otlp_forwarder import OtlpForwarder
from support.accounts import is_at_rest
from support.hosts import EVERYTHING, running_host
from support.telemetry_records import telemetry_record
from support.waiting import wait_until

if TYPE_CHECKING:
    from integration.collector.conftest import Collector, Point, StartCollector

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_100)]
START_NS = 1_760_000_000_000_000_000
PROTOCOLS = ["http/protobuf", "grpc"]
CLIENTS = 30
PUSHES = 5


def attribute(key: str, chance: random.Random) -> KeyValue:
    """An attribute value of any type."""
    text = AnyValue(string_value=f"value {chance.random()} é")
    values = [
        text,
        AnyValue(bool_value=True),
        AnyValue(int_value=chance.randrange(-(2**63), 2**63)),
        AnyValue(double_value=chance.random()),
        AnyValue(bytes_value=chance.randbytes(9)),
        AnyValue(array_value=ArrayValue(values=[text, AnyValue(int_value=7)])),
        AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="inner", value=text)])),
    ]
    return KeyValue(key=key, value=chance.choice(values))


def stamped(point: Any, chance: random.Random) -> Any:
    point.start_time_unix_nano = START_NS
    point.time_unix_nano = START_NS + chance.randrange(10**12)
    point.flags = chance.choice([0, 1])
    point.attributes.extend(attribute(f"attribute.{number}", chance) for number in range(chance.randrange(3)))
    return point


def exemplar(chance: random.Random) -> Exemplar:
    found = Exemplar(
        time_unix_nano=START_NS + 5, span_id=chance.randbytes(8), trace_id=chance.randbytes(16), as_double=1.5
    )
    found.filtered_attributes.append(attribute("filtered", chance))
    return found


def metric(kind: str, name: str, chance: random.Random) -> Metric:
    """A metric of a type, with all its fields."""
    found = Metric(name=name, description=f"about {name}", unit="ms")
    data = getattr(found, kind)
    data.SetInParent()
    if kind in ("sum", "histogram", "exponential_histogram"):
        data.aggregation_temporality = chance.choice([1, 2])
    if kind == "sum":
        data.is_monotonic = chance.random() < 0.5
    for _ in range(chance.randrange(1, 4)):
        point = stamped(data.data_points.add(), chance)
        FILLED[kind](point, chance)
        if kind != "summary":
            point.exemplars.append(exemplar(chance))
    return found


def number(point: Any, chance: random.Random) -> None:
    if chance.random() < 0.5:
        point.as_int = chance.choice([0, chance.randrange(-(2**63), 2**63)])
    else:
        point.as_double = chance.choice([0.0, chance.uniform(-1e300, 1e300)])


def histogram(point: Any, chance: random.Random) -> None:
    point.explicit_bounds.extend([0.1, 1.0, 10.0])
    point.bucket_counts.extend(chance.randrange(2**40) for _ in range(4))
    point.count, point.sum, point.min, point.max = 7, 3.5, -1.0, 20.0


def exponential_histogram(point: Any, chance: random.Random) -> None:
    point.scale, point.zero_count, point.zero_threshold = -3, 4, 1e-9
    point.positive.offset, point.negative.offset = -5, 2
    point.positive.bucket_counts.extend([1, 0, chance.randrange(100)])
    point.negative.bucket_counts.extend([2])
    point.count, point.sum, point.min, point.max = 12, 1.25, -4.0, 9.0


def summary(point: Any, chance: random.Random) -> None:
    point.count, point.sum = 3, 4.5
    for quantile in (0.0, 0.5, 1.0):
        point.quantile_values.add(quantile=quantile, value=chance.random())


FILLED = {
    "gauge": number,
    "sum": number,
    "histogram": histogram,
    "exponential_histogram": exponential_histogram,
    "summary": summary,
}
KINDS = tuple(FILLED)


def push(client: int, number: int, java: bool) -> bytes:
    """One ResourceMetrics for each metric, as Java sends it, or one for all, as librdkafka does."""
    chance = random.Random(client * 1_000 + number)
    metrics = [
        metric(kind, f"org.apache.kafka.{kind}.{index}", chance) for kind in KINDS for index in range(4)
    ]
    data = MetricsData()
    for group in [[each] for each in metrics] if java else [metrics]:
        scope = ScopeMetrics(metrics=group)
        if not java:
            scope.scope.name, scope.scope.version = "rdkafka", "2.16"
        entry = data.resource_metrics.add(scope_metrics=[scope])
        if java:
            entry.resource.attributes.add(key="client_rack").value.string_value = "a"
    return data.SerializeToString()


def record(client: int, number: int) -> TelemetryRecord:
    """A push with the host's labels."""
    labels = encode_labels({"client_id": f"client-{client}", "principal": "User:ANONYMOUS"})
    data = label(push(client, number, java=client % 2 == 0), labels, PayloadLimits())
    return telemetry_record(data, client.to_bytes(16))


def endpoint(collector: Collector, protocol: str) -> str:
    return f"http://127.0.0.1:{collector.grpc_port if protocol == 'grpc' else collector.http_port}"


@pytest.mark.parametrize(
    ("protocol", "compression"),
    [
        ("http/protobuf", "none"),
        ("http/protobuf", "gzip"),
        ("http/protobuf", "zstd"),
        ("grpc", "none"),
        ("grpc", "gzip"),
    ],
)
def test_the_collector_writes_every_delivered_point(
    start_collector: StartCollector,
    points: Callable[[MetricsData], Counter[Point]],
    protocol: str,
    compression: str,
) -> None:
    batch = [record(client, number) for number in range(PUSHES) for client in range(CLIENTS)]
    expected: Counter[Point] = Counter()
    for each in batch:
        expected += points(MetricsData.FromString(each.payload.data))

    async def deliver(collector: Collector) -> None:
        table = {"endpoint": endpoint(collector, protocol), "protocol": protocol, "compression": compression}
        forwarder = odradek_forwarder(PluginConfig("plugins.otlp", table))
        assert isinstance(forwarder, OtlpForwarder)
        await forwarder.start()
        await forwarder.deliver(batch)
        await forwarder.close()
        assert not forwarder.refused_points

    with start_collector() as collector:
        asyncio.run(deliver(collector))
        collector.wait_for(expected)

    assert {kind for kind in KINDS if any(kind.encode() in point[2] for point in expected)} == set(KINDS)


class Tap:
    """A receiver that stores the payloads given to plugins."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.payloads.append(payload.data)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pushes_of_librdkafka_arrive_with_their_labels(
    start_collector: StartCollector,
    points: Callable[[MetricsData], Counter[Point]],
    protocol: str,
    tmp_path: Path,
) -> None:
    from confluent_kafka import Producer

    tap = Tap()

    def tapped(host: Host) -> None:
        host.receivers.add_receiver("tap", tap)

    with start_collector() as collector:
        overrides = (
            *EVERYTHING,
            f"plugins.otlp.endpoint={endpoint(collector, protocol)}",
            f"plugins.otlp.protocol={protocol}",
            "plugins.otlp.batch.max.age.ms=50",
        )
        with running_host(tmp_path / "data", *overrides, before_start=tapped) as host:
            producers = [
                Producer({"bootstrap.servers": host.bootstrap, "client.id": f"orders-{number}"})
                for number in range(3)
            ]
            end_s = time.monotonic() + 20
            while len(tap.payloads) < 12 and time.monotonic() < end_s:
                for producer in producers:
                    producer.produce("orders", b"value")
                    producer.poll(0.05)
            for producer in producers:
                producer.flush(5)
                producer.close()
            wait_until(lambda: host.call(lambda: is_at_rest(host.host)), "a client or a push is left")
            expected: Counter[Point] = Counter()
            for payload in tap.payloads:
                expected += points(MetricsData.FromString(payload))
            collector.wait_for(expected)

    assert len(tap.payloads) >= 12
    assert any(b"orders-1" in point[0] for point in expected)
