"""Payloads and records for the tests of the decoder: random ones, and mutations of them."""

from __future__ import annotations

import random

from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, NumberDataPoint, ResourceMetrics

from odradek.plugin import ClientTelemetryPayload, TelemetryRecord
from odradek.testing import request_context
from odradek.topic.telemetry_topic import encode_headers, record_key
from odradek_tables.decoder.topic_record import TopicRecord

RECEIVED_MS = 1_790_000_000_000
TIME_NS = RECEIVED_MS * 1_000_000
NAMES = (
    "org.apache.kafka.producer.batch.size.avg",
    "org.apache.kafka.consumer.x",
    "mine",
    "",
    "ü" * 70,
    "x" * 130,
)
TEXTS = ("", "a", "topic-1", "名前", "y" * 200)
INTEGERS = (0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63))
DOUBLES = (0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 5e-324)


def topic_record(
    payload: bytes, offset: int = 0, partition: int = 0, client: int = 1, received_ms: int = RECEIVED_MS
) -> TopicRecord:
    """A record as the host writes it."""
    context = request_context(client_id=f"client-{client}", received_ms=received_ms)
    instance = bytes([client]) * 16
    record = TelemetryRecord(
        context, 30_000, ClientTelemetryPayload(instance, False, payload), subscription_id=7, codec=4
    )
    return TopicRecord(partition, offset, received_ms, record_key(instance), payload, encode_headers(record))


def number_point(source: random.Random) -> NumberDataPoint:
    point = NumberDataPoint()
    if source.random() < 0.9:
        point.time_unix_nano = TIME_NS + source.randrange(10**12)
    if source.random() < 0.7:
        point.start_time_unix_nano = source.choice((TIME_NS, 2**64 - 1, 1))
    which = source.random()
    if which < 0.6:
        point.as_double = source.choice(DOUBLES)
    elif which < 0.9:
        point.as_int = source.choice(INTEGERS)
    add_attributes(point, source)
    if source.random() < 0.1:
        point.flags = source.choice((1, 2, 3, 2**32 - 1))
    if source.random() < 0.05:
        point.exemplars.add(as_double=source.choice(DOUBLES), span_id=b"12345678")
    return point


def add_attributes(point: NumberDataPoint, source: random.Random) -> None:
    for key in source.sample(("topic", "partition", "node_id", "other"), source.randrange(3)):
        value = point.attributes.add(key=key).value
        if source.random() < 0.8:
            value.string_value = source.choice(TEXTS)
        else:
            value.int_value = source.choice(INTEGERS)


def metric(source: random.Random, plain: bool) -> Metric:
    made = Metric(name=source.choice(NAMES), unit=source.choice(TEXTS), description=source.choice(TEXTS))
    kind = source.random() * (0.8 if plain else 1.1)
    if kind < 0.4:
        made.gauge.data_points.extend(number_point(source) for _ in range(source.randrange(4)))
    elif kind < 0.8:
        made.sum.aggregation_temporality = source.choice((0, 1, 2))  # type: ignore[assignment]
        made.sum.is_monotonic = source.random() < 0.5
        made.sum.data_points.extend(number_point(source) for _ in range(source.randrange(4)))
    elif kind < 0.87:
        made.histogram.data_points.add(
            count=3, sum=1.5, bucket_counts=[1, 2**64 - 1], explicit_bounds=[0.5], time_unix_nano=TIME_NS
        )
    elif kind < 0.94:
        exponential = made.exponential_histogram.data_points.add(count=3, scale=-1, zero_count=1)
        exponential.positive.bucket_counts.extend([1, 300])
        exponential.exemplars.add(as_int=-5)
    elif kind < 1.0:
        made.summary.data_points.add(count=1, sum=2.0).quantile_values.add(quantile=0.5, value=2.0)
    return made


def metrics_data(source: random.Random) -> MetricsData:
    """Metrics of every kind; half of the time only those that Kafka clients send."""
    data, plain, one_resource = MetricsData(), source.random() < 0.5, source.random() < 0.7
    rack = source.choice(TEXTS)
    for _ in range(source.randrange(4)):
        group: ResourceMetrics = data.resource_metrics.add()
        if source.random() < 0.9 or one_resource:
            value = group.resource.attributes.add(key="client_rack").value
            value.string_value = rack if one_resource else source.choice(TEXTS)
        for _ in range(source.randrange(3)):
            scoped = group.scope_metrics.add(schema_url=source.choice(TEXTS))
            if source.random() < 0.5:
                scoped.scope.name, scoped.scope.version = source.choice(TEXTS), "1"
            scoped.metrics.extend(metric(source, plain) for _ in range(source.randrange(4)))
    return data


def random_metrics() -> st.SearchStrategy[MetricsData]:
    """Random messages that shrink with the seed."""
    return st.integers(0, 2**32).map(lambda seed: metrics_data(random.Random(seed)))


def with_other_numbers(data: MetricsData, source: random.Random) -> bytes:
    """The same layout with other times and values."""
    changed = MetricsData()
    changed.CopyFrom(data)
    for group in changed.resource_metrics:
        for scoped in group.scope_metrics:
            for each in scoped.metrics:
                for point in (*each.gauge.data_points, *each.sum.data_points):
                    if point.time_unix_nano:
                        point.time_unix_nano += 1 + source.randrange(10**9)
                    if point.HasField("as_double"):
                        point.as_double = source.choice(DOUBLES)
                    elif point.HasField("as_int"):
                        point.as_int = source.choice(INTEGERS)
    return changed.SerializeToString()


def mutated(payload: bytes, source: random.Random) -> bytes:
    """The payload with bytes changed, removed, doubled or inserted."""
    changed = bytearray(payload)
    for _ in range(source.randrange(1, 4)):
        at = source.randrange(len(changed) + 1) if changed else 0
        match source.randrange(4):
            case 0 if at < len(changed):
                changed[at] = source.randrange(256)
            case 1:
                del changed[at : at + source.randrange(1, 6)]
            case 2:
                changed[at:at] = source.randbytes(source.randrange(1, 6))
            case _:
                changed[at:at] = changed[at : at + source.randrange(20)]
    return bytes(changed)
