"""The general decoder of payloads: protobuf parses them, with every kind of metric and every field."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Exemplar,
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    SummaryDataPoint,
)

from odradek_tables.decoder.json_values import canonical_json, json_text, plain_number
from odradek_tables.decoder.payload_points import INT64_MAX, PayloadPoints
from odradek_tables.decoder.series import (
    Kind,
    MetricHead,
    Number,
    Numbered,
    PointLabels,
    ResourceLabels,
    Series,
    family,
)

NO_RECORDED_VALUE = 1
SIGNED, DOUBLE = struct.Struct("<q"), struct.Struct("<d")
DataPoint = NumberDataPoint | HistogramDataPoint | ExponentialHistogramDataPoint | SummaryDataPoint


class Undecodable(Exception):
    """The bytes are not OTLP metrics."""


@dataclass(slots=True)
class Collected:
    """Collects data points in their order."""

    series: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    resources: list[int] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    exemplars: dict[int, str] = field(default_factory=dict)
    histograms: list[dict[str, Any]] = field(default_factory=list)
    labels: dict[tuple[bytes, ...], PointLabels] = field(default_factory=dict)
    """By attributes: most points share theirs with others of the payload."""

    @property
    def count(self) -> int:
        return len(self.series) + len(self.histograms)

    def labels_of(self, point: DataPoint) -> PointLabels:
        key = tuple([each.SerializeToString() for each in point.attributes])
        if key not in self.labels:
            self.labels[key] = PointLabels.of(point.attributes)
        return self.labels[key]


def decode_by_protobuf(
    payload: bytes, series: Numbered[Series], resources: Numbered[ResourceLabels]
) -> PayloadPoints:
    """Decode all data points of a payload.

    Raises:
        Undecodable: The payload is not ``MetricsData``.
    """
    try:
        data = MetricsData.FromString(payload)
    except DecodeError as error:
        raise Undecodable(f"not OTLP metrics: {error}") from error
    found = Collected()
    known: dict[bytes, ResourceLabels] = {}
    for group in data.resource_metrics:
        raw = group.resource.SerializeToString()
        labels = known[raw] = known.get(raw) or ResourceLabels.of(group.resource.attributes)
        for scoped in group.scope_metrics:
            for metric in scoped.metrics:
                add_metric(metric, scoped.scope, labels, resources.number(labels), series, found)
    return PayloadPoints(
        np.array(found.series, np.int32),
        np.array(found.times, np.uint64).view(np.int64),
        np.array(found.starts, np.uint64).view(np.int64),
        np.array(found.values, np.uint64).view(np.int64),
        np.array(found.resources, np.int32),
        np.array(found.indexes, np.int32),
        found.exemplars,
        found.histograms,
    )


def add_metric(
    metric: Metric,
    scope: InstrumentationScope,
    labels: ResourceLabels,
    resource: int,
    series: Numbered[Series],
    found: Collected,
) -> None:
    head, points = data_of(metric)
    for point in points:
        flags = point.flags - (point.flags >> 31 << 32)  # signed, as its column
        number = number_of(point) if isinstance(point, NumberDataPoint) else Number.NONE
        described = Series(
            *head, *found.labels_of(point), scope.name, scope.version, flags, number, family(head.name)
        )
        if isinstance(point, NumberDataPoint):
            add_number(point, series.number(described), resource, found)
        else:
            row = described._asdict() | labels._asdict() | distribution(point)
            row["time_unix_nano"] = at_most(point.time_unix_nano)
            row["start_unix_nano"] = at_most(point.start_time_unix_nano)
            row["src_idx"] = found.count
            row["exemplars"] = exemplars_json(getattr(point, "exemplars", ()))
            found.histograms.append(row)


def data_of(metric: Metric) -> tuple[MetricHead, Sequence[DataPoint]]:
    """The head of a metric, and its data points; no points for a metric without data."""
    which = metric.WhichOneof("data")
    if which is None:
        return MetricHead("", "", 0, 0, False), ()
    data = getattr(metric, which)
    return MetricHead(
        name=metric.name,
        unit=metric.unit,
        kind=KINDS[which],
        # a client may send an undefined one, which the column has no room for
        temporality=max(-128, min(127, getattr(data, "aggregation_temporality", 0))),
        monotonic=getattr(data, "is_monotonic", False),
    ), data.data_points


KINDS = {
    "gauge": Kind.GAUGE,
    "sum": Kind.SUM,
    "histogram": Kind.HISTOGRAM,
    "exponential_histogram": Kind.EXPONENTIAL_HISTOGRAM,
    "summary": Kind.SUMMARY,
}


def number_of(point: NumberDataPoint) -> Number:
    """The type of a point's value; NONE if a flag says that it has no recorded value."""
    which = None if point.flags & NO_RECORDED_VALUE else point.WhichOneof("value")
    return Number.NONE if which is None else Number.DOUBLE if which == "as_double" else Number.INT


def add_number(point: NumberDataPoint, series: int, resource: int, found: Collected) -> None:
    if point.exemplars:
        found.exemplars[len(found.series)] = exemplars_json(point.exemplars) or ""
    found.indexes.append(found.count)
    found.series.append(series)
    found.times.append(point.time_unix_nano)
    found.starts.append(point.start_time_unix_nano)
    found.values.append(0 if number_of(point) is Number.NONE else bits_of(point) & 0xFFFF_FFFF_FFFF_FFFF)
    found.resources.append(resource)


def bits_of(point: NumberDataPoint) -> int:
    """The 64 bits of the value, signed."""
    return point.as_int or SIGNED.unpack(DOUBLE.pack(point.as_double))[0]


def number_points(payload: bytes) -> Iterator[NumberDataPoint]:
    """The gauges and sums of a payload that has nothing else."""
    for group in MetricsData.FromString(payload).resource_metrics:
        for scoped in group.scope_metrics:
            for metric in scoped.metrics:
                yield from metric.gauge.data_points or metric.sum.data_points


def distribution(point: DataPoint) -> dict[str, Any]:
    """The columns of the distribution in the table of histograms."""
    row: dict[str, Any] = {"count": at_most(point.count), "sum": None, "min": None, "max": None}  # type: ignore[union-attr]
    if isinstance(point, SummaryDataPoint):
        quantiles = [{"q": each.quantile, "v": each.value} for each in point.quantile_values]
        return row | {"sum": point.sum, "quantiles": quantiles}
    assert not isinstance(point, NumberDataPoint)
    row |= {name: getattr(point, name) for name in ("sum", "min", "max") if point.HasField(name)}
    if isinstance(point, HistogramDataPoint):
        counts = [at_most(each) for each in point.bucket_counts]
        return row | {"bounds": list(point.explicit_bounds), "counts": counts}
    return row | {
        "scale": point.scale,
        "zero_count": at_most(point.zero_count),
        "zero_threshold": point.zero_threshold,
        "pos_offset": point.positive.offset,
        "neg_offset": point.negative.offset,
        "pos_counts": [at_most(each) for each in point.positive.bucket_counts],
        "neg_counts": [at_most(each) for each in point.negative.bucket_counts],
    }


def exemplars_json(exemplars: Iterable[Exemplar]) -> str | None:
    found = [
        {
            "attributes": canonical_json(each.filtered_attributes),
            "time_unix_nano": each.time_unix_nano,
            "value": plain_number(getattr(each, which)) if (which := each.WhichOneof("value")) else None,
            "span_id": each.span_id.hex(),
            "trace_id": each.trace_id.hex(),
        }
        for each in exemplars
    ]
    return json_text(found) if found else None


def at_most(count: int) -> int:
    """An unsigned 64-bit number within the columns of the tables, which are signed."""
    return min(count, INT64_MAX)
