"""An OTLP destination that keeps the newest total of each series."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, NumberDataPoint

from odradek.telemetry.kept_pushes import Loss
from odradek.wire.error_code import ErrorCode
from support.hosts import ThreadedHost
from support.otlp_collector import Exchange

CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
Series = tuple[str, str]
"""Name and attributes of a counter, as `PushedTotals.java` prints them."""


@dataclass(eq=False)
class NewestTotals:
    """A collector's mood. Clients with the same series share their totals."""

    totals: dict[Series, float] = field(default_factory=dict)
    starts: dict[Series, set[int]] = field(default_factory=dict)
    """The start times of each series: more than one if a total began again."""
    fallen: list[Series] = field(default_factory=list)
    """Series whose total went back."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, exchange: Exchange) -> None:
        request = ExportMetricsServiceRequest.FromString(exchange.body())
        with self.lock:
            for entry in request.resource_metrics:
                for scope in entry.scope_metrics:
                    for metric in scope.metrics:
                        self.take(metric)
        exchange.answer(200)

    def take(self, metric: Metric) -> None:
        """Keep the points of a counter."""
        if not metric.sum.is_monotonic:
            return
        assert metric.sum.aggregation_temporality == CUMULATIVE
        for point in metric.sum.data_points:
            series, value = (metric.name, attributes(point)), number(point)
            if value < self.totals.get(series, 0.0):
                self.fallen.append(series)
            self.totals[series] = value
            self.starts.setdefault(series, set()).add(point.start_time_unix_nano)

    def differences(self, wanted: dict[Series, float]) -> dict[Series, tuple[float | None, float | None]]:
        """Series whose total is another one than wanted: wanted and found."""
        with self.lock:
            found = dict(self.totals)
        return {
            series: (wanted.get(series), found.get(series))
            for series in wanted.keys() | found.keys()
            if wanted.get(series) != found.get(series)
        }


def attributes(point: NumberDataPoint) -> str:
    return ",".join(sorted(f"{each.key}={text(each.value)}" for each in point.attributes))


def text(value: AnyValue) -> str:
    return value.string_value if value.WhichOneof("value") == "string_value" else str(value.int_value)


def number(point: NumberDataPoint) -> float:
    return point.as_double if point.WhichOneof("value") == "as_double" else float(point.as_int)


def appended(host: ThreadedHost) -> int:
    """The number of accepted pushes with metrics."""
    return host.call(lambda: host.host.telemetry.accounts.appended)


def kept(host: ThreadedHost) -> int:
    """The number of refused pushes that were stored."""
    return sum(host.call(lambda: dict(host.host.telemetry.accounts.kept)).values())


def lost(host: ThreadedHost) -> dict[tuple[ErrorCode, Loss], int]:
    """Refused pushes that were not stored, by answer and reason."""
    return host.call(lambda: dict(host.host.telemetry.kept.lost))
