"""The data points of a push as protobuf has parsed them, each with the key of its stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
)

from odradek.otlp import NotOtlp
from odradek.temporality.counts import Rejection
from odradek.temporality.exponential import has_fitting_scale
from odradek.temporality.histogram import has_fitting_buckets
from odradek.temporality.layout import CUMULATIVE, DELTA, Learnable
from odradek.temporality.stream_key import Identity, Kind, StreamKey, StreamKeys, canonical

NO_RECORDED_VALUE: Final = 1

DataPoint = NumberDataPoint | HistogramDataPoint | ExponentialHistogramDataPoint


@dataclass(slots=True)
class ParsedPoint:
    """A data point whose stream the engine keeps."""

    key: StreamKey
    kind: Kind
    point: DataPoint
    is_cumulative: bool
    rejection: Rejection | None

    @property
    def has_value(self) -> bool:
        return not self.point.flags & NO_RECORDED_VALUE


@dataclass(slots=True)
class ParsedMetric:
    """The data of a metric (its gauge, sum or histogram), and its points."""

    data: Any
    points: Sequence[ParsedPoint]


def parse(data: bytes) -> MetricsData:
    """Parse a push.

    Raises:
        NotOtlp: The bytes are not MetricsData.
    """
    try:
        return MetricsData.FromString(data)
    except DecodeError as error:
        raise NotOtlp(f"not MetricsData: {error}") from None


class PushParser:
    """Finds the streams of parsed pushes."""

    def __init__(self, keys: StreamKeys, resource_of: Callable[[Any], bytes], *, keep_gauges: bool) -> None:
        self.keys = keys
        self.resource_of = resource_of
        self.keep_gauges = keep_gauges

    def metrics(self, parsed: MetricsData) -> Iterator[ParsedMetric]:
        """The metrics whose streams the engine keeps, in their order."""
        for entry in parsed.resource_metrics:
            resource = self.resource_of(entry.resource)
            for scope in entry.scope_metrics:
                for metric in scope.metrics:
                    kind = self.kind_of(metric)
                    if kind is not None:
                        yield self.metric(metric, kind, resource, scope.scope.name)

    def kind_of(self, metric: Metric) -> Kind | None:
        """The kind of a metric's streams; None if they are not kept."""
        which = metric.WhichOneof("data")
        if which == "sum":
            return Kind.COUNTER if metric.sum.is_monotonic else Kind.SUM
        if which == "histogram":
            return Kind.HISTOGRAM
        if which == "exponential_histogram":
            return Kind.EXPONENTIAL_HISTOGRAM
        return Kind.GAUGE if which == "gauge" and self.keep_gauges else None

    def metric(self, metric: Metric, kind: Kind, resource: bytes, scope: str) -> ParsedMetric:
        data = getattr(metric, str(metric.WhichOneof("data")))
        temporality = CUMULATIVE if kind == Kind.GAUGE else data.aggregation_temporality
        name, unit, points = metric.name, metric.unit, []
        for point in data.data_points:
            identity = Identity(resource, scope, name, unit, kind, canonical(point.attributes))
            points.append(
                ParsedPoint(
                    self.keys.key(identity),
                    kind,
                    point,
                    temporality == CUMULATIVE,
                    rejection(point, kind, temporality),
                )
            )
        return ParsedMetric(data, points)

    def learnable(self, parsed: MetricsData, metrics: Sequence[ParsedMetric]) -> list[Learnable] | None:
        """The points of a push as a layout needs them; None for other kinds than gauges and delta counters.

        Args:
            parsed: The push, a single ResourceMetrics.
            metrics: Its metrics whose streams are kept.
        """
        kept = (each.key for metric in metrics for each in metric.points)
        found: list[Learnable] = []
        for scope in parsed.resource_metrics[0].scope_metrics:
            for metric in scope.metrics:
                is_sum = metric.HasField("sum")
                if not (is_delta_counter(metric) if is_sum else metric.HasField("gauge")):
                    return None
                points = (metric.sum if is_sum else metric.gauge).data_points
                last = len(points) - 1
                for index, point in enumerate(points):
                    key = next(kept) if is_sum or self.keep_gauges else None
                    found.append(Learnable(key, is_sum, point, index == last))
        keys = [each.key for each in found if each.key is not None]
        return found if len(keys) == len(set(keys)) else None


def is_delta_counter(metric: Metric) -> bool:
    return metric.sum.is_monotonic and metric.sum.aggregation_temporality == DELTA


def rejection(point: DataPoint, kind: Kind, temporality: int) -> Rejection | None:
    """Why a point cannot be added; None if it can."""
    if temporality not in (DELTA, CUMULATIVE):
        return Rejection.TEMPORALITY
    if point.flags & NO_RECORDED_VALUE:
        return None
    if isinstance(point, NumberDataPoint):
        return rejected_number(point, kind)
    if not fits(point):
        return Rejection.BUCKETS
    return None if math.isfinite(point.sum) else Rejection.NOT_FINITE


def fits(point: HistogramDataPoint | ExponentialHistogramDataPoint) -> bool:
    """Whether the parts of a histogram fit each other."""
    if isinstance(point, HistogramDataPoint):
        return has_fitting_buckets(point)
    return has_fitting_scale(point)


def rejected_number(point: NumberDataPoint, kind: Kind) -> Rejection | None:
    """Why a number cannot be added; None if it can."""
    if point.WhichOneof("value") is None:
        return Rejection.NO_VALUE
    if kind == Kind.GAUGE:
        return None
    value = number(point)
    if not math.isfinite(value):
        return Rejection.NOT_FINITE
    return Rejection.NEGATIVE if value < 0 and kind == Kind.COUNTER else None


def number(point: NumberDataPoint) -> float:
    """The value of a point, an int or a float."""
    return point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
