"""A real OpenTelemetry collector reads what was exported to a topic, in both encodings, point for point."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
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

from odradek.plugin import (
    ClientTelemetryPayload,
    ConnectionContext,
    PluginConfig,
    RequestContext,
    TelemetryRecord,
)
from odradek_kafka import odradek_forwarder
from support.hosts import running_host

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
OTELCOL = Path(__file__).resolve().parents[2] / "contrib" / "otelcol"
PATIENCE_S = 60.0
DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
TIME_NS = 1_760_000_000_000_000_123
LARGEST = 2**63 - 1
PUSHES = 30


@pytest.fixture(scope="module")
def otelcol() -> str:
    """The collector of ``contrib/otelcol``."""
    command = [sys.executable, str(OTELCOL / "collector.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(done.stderr.strip())
    return done.stdout.strip()


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
    connection = ConnectionContext(
        connection_id="127.0.0.1:9092-127.0.0.1:40000-0",
        listener_name="PLAINTEXT",
        security_protocol="PLAINTEXT",
        client_address="127.0.0.1",
        client_port=40000,
        node_id=1,
    )
    request = RequestContext(
        connection=connection, api_key=72, api_version=0, correlation_id=1, client_id="orders", received_ms=1
    )
    payload = ClientTelemetryPayload(bytes([number % 3 + 1]) * 16, terminating=False, data=push(number))
    return TelemetryRecord(request, 1_000, payload)


def export(bootstrap: str, topic: str, encoding: str) -> None:
    table = {"bootstrap.servers": bootstrap, "topic": topic, "encoding": encoding}
    forwarder = odradek_forwarder(PluginConfig("plugins.kafka", table))
    assert forwarder is not None

    async def run() -> None:
        await forwarder.start()
        await forwarder.deliver([record_of(number) for number in range(PUSHES)])
        await forwarder.close()

    asyncio.run(run())


@contextmanager
def collecting(program: str, output: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """The collector with ``kafka.yaml``, writing a file instead of printing."""
    changes = {
        "exporters": {"file": {"path": str(output), "flush_interval": "100ms"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"metrics": {"exporters": ["file"]}},
        },
    }
    command = [program, "--config", str(OTELCOL / "kafka.yaml"), "--config", f"yaml:{json.dumps(changes)}"]
    with (output.parent / "otelcol.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **variables})
        try:
            yield process
        finally:
            process.terminate()
            process.wait(20)


def with_base64_ids(found: Any) -> Any:
    """OTLP's JSON as protobuf's: ids are hexadecimal in the one, base64 in the other."""
    if isinstance(found, list):
        return [with_base64_ids(item) for item in found]
    if not isinstance(found, dict):
        return found
    return {
        key: base64.b64encode(bytes.fromhex(value)).decode()
        if key in ("traceId", "spanId")
        else with_base64_ids(value)
        for key, value in found.items()
    }


def points(data: MetricsData) -> Counter[tuple[bytes, ...]]:
    """Each data point with all that it belongs to."""
    found: Counter[tuple[bytes, ...]] = Counter()
    for entry in data.resource_metrics:
        for scope in entry.scope_metrics:
            for metric in scope.metrics:
                for point in split(metric):
                    found[tuple(map(fixed, (entry.resource, scope.scope, point)))] += 1
    return found


def split(metric: Metric) -> Iterator[Metric]:
    """The metric once for each of its points."""
    kind = str(metric.WhichOneof("data"))
    for point in getattr(metric, kind).data_points:
        single = Metric()
        single.CopyFrom(metric)
        del getattr(single, kind).data_points[:]
        getattr(single, kind).data_points.append(point)
        yield single


def fixed(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def written(output: Path) -> Counter[tuple[bytes, ...]]:
    """What is in the collector's file."""
    found: Counter[tuple[bytes, ...]] = Counter()
    lines = output.read_text(encoding="utf-8").split("\n")[:-1] if output.exists() else []
    for line in lines:
        found += points(json_format.ParseDict(with_base64_ids(json.loads(line)), MetricsData()))
    return found


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_what_the_collector_reads_is_what_clients_pushed(otelcol: str, tmp_path: Path, encoding: str) -> None:
    output = tmp_path / "metrics.json"
    wanted: Counter[tuple[bytes, ...]] = Counter()
    for number in range(PUSHES):
        wanted += points(MetricsData.FromString(push(number)))

    with running_host(tmp_path / "data") as host:
        export(host.bootstrap, "exported", encoding)
        variables = {"KAFKA": host.bootstrap, "TOPIC": "exported", "ENCODING": encoding}
        with collecting(otelcol, output, **variables) as process:
            end_s = time.monotonic() + PATIENCE_S
            while (found := written(output)).total() < wanted.total():
                assert process.poll() is None, (tmp_path / "otelcol.log").read_text(encoding="utf-8")
                assert time.monotonic() < end_s, found.total()
                time.sleep(0.2)

    assert wanted.total() == PUSHES * 5
    assert found == wanted
