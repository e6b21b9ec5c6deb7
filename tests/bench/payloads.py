"""Synthetic OTLP payloads in the shapes that real clients send.

``java25k``: what the Java producer sends, one ResourceMetrics per metric, 150 of them, about 21 kB, zstd.
``librd6k``: what librdkafka sends, one ResourceMetrics with 40 metrics, about 5.4 kB, zstd.
``small``: 500 bytes of valid OTLP, not compressed.

Names and values vary from a fixed seed, so every run measures the same bytes, and zstd finds what it would
find in real metrics: repeated names, different numbers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Metric,
    MetricsData,
    NumberDataPoint,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

NONE = 0
ZSTD = 4
DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
RACK = ("client_rack", "eu-central-1a-hall-7-r17")
PREFIX = "org.apache.kafka.producer."
START_NS = 1_760_000_000_000_000_000
AGGREGATES = ("avg", "max", "rate", "total", "count", "min")
SUBJECTS = (
    "connection.creation",
    "node.request.latency",
    "produce.throttle.time",
    "record.queue.time",
    "record.send",
    "batch.size",
    "compression",
    "bufferpool.wait.time",
    "request.latency",
    "metadata.wait.time",
    "outgoing.byte",
    "incoming.byte",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One payload: its OTLP bytes and the bytes that go on the wire."""

    name: str
    raw: bytes
    """MetricsData, uncompressed."""
    codec: int
    """Kafka's compression type: 0 none, 4 zstd."""
    wire: bytes


def java25k() -> Payload:
    """150 metrics, about 21 kB."""
    return java("java25k", 150)


def java(name: str, count: int) -> Payload:
    """Metrics, each in its own ResourceMetrics, all with the same Resource."""
    data = MetricsData()
    resource = resource_of(RACK)
    for metric in metrics(count, seed=25):
        entry = data.resource_metrics.add(resource=resource)
        entry.scope_metrics.add().metrics.append(metric)
    return compressed(name, data)


def librd6k() -> Payload:
    """40 metrics with descriptions in one ResourceMetrics and one scope, without a Resource."""
    data = MetricsData()
    scope = data.resource_metrics.add().scope_metrics.add()
    scope.scope.name, scope.scope.version = "rdkafka#producer-1", "2.16.0"
    for metric in metrics(40, seed=6):
        subject = metric.name.removeprefix(PREFIX).rpartition(".")[0].replace(".", " ")
        metric.description = f"How the {subject} went since then."
        scope.metrics.append(metric)
    return compressed("librd6k", data)


def small(size_bytes: int = 500) -> Payload:
    """Three metrics, padded to ``size_bytes`` with a resource attribute."""
    data = MetricsData()
    entry = data.resource_metrics.add(resource=resource_of(("client_rack", "")))
    entry.scope_metrics.add().metrics.extend(metrics(3, seed=5))
    rack = entry.resource.attributes[0].value
    while (missing := size_bytes - data.ByteSize()) > 0:
        rack.string_value += "x" * max(1, missing - 8)
    raw = data.SerializeToString()
    return Payload(name="small", raw=raw, codec=NONE, wire=raw)


def compressed(name: str, data: MetricsData) -> Payload:
    """Compress as a stream: neither librdkafka nor the Java client puts the content size into the zstd
    frame.
    """
    raw = data.SerializeToString()
    stream = zstandard.ZstdCompressor().compressobj()
    return Payload(name=name, raw=raw, codec=ZSTD, wire=stream.compress(raw) + stream.flush())


def resource_of(*labels: tuple[str, str]) -> Resource:
    resource = Resource()
    for key, value in labels:
        resource.attributes.add(key=key).value.string_value = value
    return resource


def metrics(count: int, *, seed: int) -> Iterator[Metric]:
    """Gauges and monotonic delta sums alternately, one data point each; every third is about one node."""
    chance = random.Random(seed)
    for index in range(count):
        subject = SUBJECTS[index // len(AGGREGATES) % len(SUBJECTS)]
        metric = Metric(name=f"{PREFIX}{subject}.{AGGREGATES[index % len(AGGREGATES)]}")
        point = NumberDataPoint(as_double=chance.expovariate(0.01))
        point.start_time_unix_nano, point.time_unix_nano = START_NS, START_NS + chance.randrange(10**9)
        if index % 3 == 0:
            point.attributes.add(key="node_id").value.string_value = str(index // len(SUBJECTS))
        if index % 2:
            metric.gauge.data_points.append(point)
        else:
            metric.sum.data_points.append(point)
            metric.sum.is_monotonic, metric.sum.aggregation_temporality = True, DELTA
        yield metric


PAYLOADS = {"small": small, "java25k": java25k, "librd6k": librd6k}

if __name__ == "__main__":
    for payload in (make() for make in PAYLOADS.values()):
        print(f"{payload.name}: {len(payload.raw)} bytes raw, {len(payload.wire)} in codec {payload.codec}")
