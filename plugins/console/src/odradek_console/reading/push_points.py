"""The data points of a push, as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData

from odradek_console.engine.client_series import Labels
from odradek_console.engine.texts import cut
from odradek_console.json_form import JsonRow

MOST_POINTS: Final = 2_000
MOST_LABELS: Final = 64
MOST_BUCKETS: Final = 40
SHOWN_BYTES: Final = 48
NS_PER_MS: Final = 1_000_000
TEMPORALITIES: Final = {1: "delta", 2: "cumulative"}
KINDS: Final = {
    "gauge": "gauge",
    "sum": "sum",
    "histogram": "histogram",
    "exponential_histogram": "exponential histogram",
    "summary": "summary",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow(JsonRow):
    """A data point."""

    metric: str
    type: str
    temporality: str
    """``delta`` or ``cumulative``; empty for gauges."""
    monotonic: bool
    unit: str
    labels: Labels
    start_ms: int
    """0 if it has none."""
    time_ms: int
    value: float | None
    """None for a point without a value, and for points with several."""
    text: str
    """The value, or the values of a histogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedPush(JsonRow):
    """The contents of a push."""

    resource: Labels = ()
    points: tuple[PointRow, ...] = ()
    left_out: int = 0
    """Points beyond the bound."""
    problem: str = ""
    """Why it cannot be decoded."""


def decoded_push(data: bytes) -> DecodedPush:
    """The contents of a push's bytes."""
    try:
        message = MetricsData.FromString(data)
    except DecodeError:
        begin = data[:SHOWN_BYTES].hex(" ")
        return DecodedPush(problem=f"It is not OTLP MetricsData. It begins with {begin}.")
    # A Java client sends a ResourceMetrics for each metric, all with the same Resource.
    resource: dict[str, str] = {}
    for entry in message.resource_metrics:
        if len(resource) < MOST_LABELS:
            resource |= labels_of(entry.resource.attributes)
    every = point_rows(
        metric
        for entry in message.resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
    )
    points = tuple(islice(every, MOST_POINTS))
    return DecodedPush(resource=tuple(resource.items()), points=points, left_out=sum(1 for _ in every))


def point_rows(metrics: Iterable[Metric]) -> Iterator[PointRow]:
    """The points of metrics. A metric without points is one row, too: some libraries send it."""
    for metric in metrics:
        kind = metric.WhichOneof("data")
        if kind is None:
            yield row(metric, "no data", None, None, "none")
            continue
        data = getattr(metric, kind)
        for point in data.data_points:
            value, text = value_of(kind, point)
            yield row(metric, kind, data, point, text, value)


def row(metric: Metric, kind: str, data: Any, point: Any, text: str, value: float | None = None) -> PointRow:
    return PointRow(
        metric=cut(metric.name),
        type=KINDS.get(kind, kind),
        temporality=TEMPORALITIES.get(getattr(data, "aggregation_temporality", 0), ""),
        monotonic=getattr(data, "is_monotonic", False),
        unit=cut(metric.unit),
        labels=() if point is None else tuple(labels_of(point.attributes).items()),
        start_ms=0 if point is None else point.start_time_unix_nano // NS_PER_MS,
        time_ms=0 if point is None else point.time_unix_nano // NS_PER_MS,
        value=value,
        text=text,
    )


def value_of(kind: str, point: Any) -> tuple[float | None, str]:
    """The value of a point, if it is one number, and as text."""
    if kind in ("gauge", "sum"):
        field = point.WhichOneof("value")
        value = None if field is None else getattr(point, field)
        return value, "no value" if value is None else f"{value:.10g}" if field == "as_double" else str(value)
    parts = [f"count {point.count}"]
    parts += [f"{each} {getattr(point, each):.6g}" for each in ("sum", "min", "max") if has(point, each)]
    if kind == "histogram":
        bounds = [*(f"≤ {each:g}" for each in point.explicit_bounds), "more"]
        counts = [
            f"{bound}: {count}" for bound, count in zip(bounds, point.bucket_counts, strict=False) if count
        ]
        parts += counts[:MOST_BUCKETS]
    return None, ", ".join(parts)


def has(point: Any, field: str) -> bool:
    """Whether a point has a value that may be absent."""
    found = point.DESCRIPTOR.fields_by_name.get(field)
    return found is not None and (not found.has_presence or point.HasField(field))


def labels_of(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """Attributes as text."""
    return {cut(each.key): cut(text_of(each.value)) for each in islice(attributes, MOST_LABELS)}


def text_of(value: AnyValue) -> str:
    which = value.WhichOneof("value")
    return "" if which is None else str(getattr(value, which))
