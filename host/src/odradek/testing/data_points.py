"""The data points of a push."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, MetricsData


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPoint:
    """One data point of one metric."""

    metric: str
    kind: str
    """``gauge``, ``sum``, ``histogram``, ``exponential_histogram`` or ``summary``."""
    value: float
    """An int if the client sent one; the sum of a histogram or summary."""
    unit: str
    time_ms: int
    """Epoch milliseconds, by the client's clock."""
    delta: bool
    """Whether the value is the change since the last push; False for absolute values."""
    monotonic: bool
    resource: Mapping[str, Any]
    """Labels of the client: its own and those that enrichers add."""
    attributes: Mapping[str, Any]
    """Labels of the point, such as topic, partition and node."""
    raw: Any = field(repr=False)
    """The protobuf message of the point."""

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of the client and of the point together."""
        return {**self.resource, **self.attributes}


def data_points(data: bytes) -> Iterator[DataPoint]:
    """Yield the data points of a serialized ``MetricsData``, in its order."""
    for resource_metrics in MetricsData.FromString(data).resource_metrics:
        resource = labels(resource_metrics.resource.attributes)
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                yield from points_of(metric, resource)


def points_of(metric: Metric, resource: Mapping[str, Any]) -> Iterator[DataPoint]:
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    data = getattr(metric, kind)
    temporality = getattr(data, "aggregation_temporality", None)
    for point in data.data_points:
        yield DataPoint(
            metric=metric.name,
            kind=kind,
            value=number(point),
            unit=metric.unit,
            time_ms=point.time_unix_nano // 1_000_000,
            delta=temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA,
            monotonic=getattr(data, "is_monotonic", False),
            resource=resource,
            attributes=labels(point.attributes),
            raw=point,
        )


def number(point: Any) -> float:
    """The value of a data point of any kind."""
    if hasattr(point, "as_int"):
        return point.as_int if point.WhichOneof("value") == "as_int" else point.as_double  # type: ignore[no-any-return]
    return point.sum  # type: ignore[no-any-return]


def labels(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    """The attributes as a dict of Python values."""
    return {attribute.key: plain(attribute.value) for attribute in attributes}


def plain(value: AnyValue) -> Any:
    """The Python value of an ``AnyValue``; None if it is empty."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return labels(value.kvlist_value.values)
    return None if kind is None else getattr(value, kind)
