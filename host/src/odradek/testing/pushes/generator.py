"""Generates payloads of any size and shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ScopeMetrics,
    SummaryDataPoint,
)

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
INTERVAL_MS = 60_000
POINTS: Mapping[str, Callable[[int, Any], Any]] = {
    "gauge": lambda n, times: NumberDataPoint(as_double=n / 2, **times),
    "sum": lambda n, times: NumberDataPoint(as_int=n, **times),
    "histogram": lambda n, times: HistogramDataPoint(
        count=n, sum=n / 2, bucket_counts=[0, n], explicit_bounds=[0], **times
    ),
    "exponential_histogram": lambda n, times: ExponentialHistogramDataPoint(
        count=n, sum=n / 2, zero_count=n, **times
    ),
    "summary": lambda n, times: SummaryDataPoint(count=n, sum=n / 2, **times),
}
"""Functions that create a data point of each kind with a value derived from a number."""


def metrics_data(
    *,
    metrics: int = 10,
    points: int = 1,
    kinds: Sequence[str] = ("gauge", "sum"),
    point_labels: int = 1,
    resource_labels: int = 1,
    resource_per_metric: bool = False,
    least_bytes: int = 0,
    prefix: str = "org.apache.kafka.producer.",
    time_ms: int = 1_700_000_000_000,
) -> bytes:
    """Return a serialized ``MetricsData``; equal arguments give equal bytes.

    Args:
        metrics: Number of metrics.
        points: Number of data points per metric.
        kinds: Kinds of the metrics, used in turn: ``gauge``, ``sum`` (delta), ``histogram``,
            ``exponential_histogram`` and ``summary``.
        point_labels: Number of attributes per data point.
        resource_labels: Number of attributes per Resource.
        resource_per_metric: True for one Resource per metric, as Java's clients send; False for one Resource
            for all metrics, as librdkafka sends.
        least_bytes: Minimum size. A description pads the payload to this size or a few bytes more.
        prefix: Prefix of the names; the rest is ``metric.0`` and so on.
        time_ms: Timestamp of the data points, epoch milliseconds.
    """
    data = MetricsData()
    scope: ScopeMetrics | None = None
    for number in range(metrics):
        if scope is None or resource_per_metric:
            entry = data.resource_metrics.add()
            entry.resource.attributes.extend(labels("resource", resource_labels))
            scope = entry.scope_metrics.add()
        kind = kinds[number % len(kinds)]
        scope.metrics.append(metric(f"{prefix}metric.{number}", kind, points, time_ms))
        for point in getattr(scope.metrics[-1], kind).data_points:
            point.attributes.extend(labels("point", point_labels))
    lacking = least_bytes - data.ByteSize()
    if lacking > 0:
        where = scope or data.resource_metrics.add().scope_metrics.add()
        padded = where.metrics[-1] if where.metrics else where.metrics.add()
        padded.description = "x" * lacking
    return data.SerializeToString()


def labels(what: str, count: int) -> list[KeyValue]:
    return [
        KeyValue(key=f"{what}_label_{number}", value=AnyValue(string_value=f"value {number}"))
        for number in range(count)
    ]


def metric(name: str, kind: str, points: int, time_ms: int) -> Metric:
    """Create a metric whose data points count up from 1.

    Raises:
        ValueError: There is no such kind of metric.
    """
    if kind not in POINTS:
        raise ValueError(f"unknown kind of metric {kind!r}: expected one of {', '.join(POINTS)}")
    times = {
        "time_unix_nano": time_ms * 1_000_000,
        "start_time_unix_nano": (time_ms - INTERVAL_MS) * 1_000_000,
    }
    made = Metric(name=name)
    data = getattr(made, kind)
    data.data_points.extend(POINTS[kind](number, times) for number in range(1, points + 1))
    if kind in ("sum", "histogram", "exponential_histogram"):
        data.aggregation_temporality = DELTA
    if kind == "sum":
        data.is_monotonic = True
    return made
