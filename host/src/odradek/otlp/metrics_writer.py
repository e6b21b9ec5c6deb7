"""OTLP ``MetricsData`` of gauges and deltas, written without an object per metric.

A payload of an observed client has some fifty data points, one of a group's lag hundreds. Names and
attributes repeat and are encoded once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from odradek.otlp.protobuf_bytes import delimited
from odradek.wire.limits import INT64_MAX, INT64_MIN

RESOURCE_METRICS: Final = 0x0A
RESOURCE: Final = 0x0A
SCOPE_METRICS: Final = 0x12
SCOPE: Final = 0x0A
METRIC: Final = 0x12
NAME: Final = 0x0A
UNIT: Final = 0x1A
GAUGE: Final = 0x2A
SUM: Final = 0x3A
HISTOGRAM: Final = 0x4A
POINT: Final = 0x0A
NUMBER_ATTRIBUTE: Final = 0x3A
HISTOGRAM_ATTRIBUTE: Final = 0x4A
ATTRIBUTE: Final = 0x0A
KEY: Final = 0x0A
VALUE: Final = 0x12
STRING_VALUE: Final = 0x0A
BUCKETS: Final = 0x32
BOUNDS: Final = 0x3A
DELTA: Final = b"\x10\x01"
"""Aggregation temporality, field 2 of Sum and Histogram."""
MONOTONIC: Final = b"\x18\x01"
NO_RECORDED_VALUE: Final = b"\x40\x01"
"""The flags of a data point, field 8."""

# Fields 2 (start) and 3 (time), fixed64, and the value: as_int is field 6, as_double field 4.
times = struct.Struct("<BQBQ").pack
times_and_int = struct.Struct("<BQBQBq").pack
times_and_double = struct.Struct("<BQBQBd").pack
# Start, time, count (4) and sum (5) of a histogram.
histogram_head = struct.Struct("<BQBQBQBd").pack
START, TIME, AS_DOUBLE, AS_INT = 0x11, 0x19, 0x21, 0x31
COUNT, TOTAL = 0x21, 0x29
HISTOGRAM_MAX: Final = 0x61
double = struct.Struct("<Bd").pack

Attributes = tuple[tuple[str, str], ...]


def key_value(key: str, value: str) -> bytes:
    """A KeyValue with a string."""
    text = delimited(STRING_VALUE, value.encode("utf-8", "replace"))
    return delimited(KEY, key.encode()) + delimited(VALUE, text)


@lru_cache(maxsize=4_096)
def encoded_attributes(tag: int, attributes: Attributes) -> bytes:
    """Attributes as repeated fields with this tag."""
    return b"".join([delimited(tag, key_value(key, value)) for key, value in attributes])


def encoded_resource(attributes: Attributes) -> bytes:
    """A serialized Resource."""
    return encoded_attributes(ATTRIBUTE, attributes)


@lru_cache(maxsize=256)
def metric_head(name: str, unit: str) -> bytes:
    """Name and unit of a metric."""
    return delimited(NAME, name.encode()) + (delimited(UNIT, unit.encode()) if unit else b"")


class Window:
    """Encodes the metrics of one window.

    Args:
        start_ms: Begin of the window, epoch milliseconds.
        end_ms: Its end.
    """

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.start_ns, self.end_ns = start_ms * 1_000_000, end_ms * 1_000_000
        self.metrics: list[bytes] = []

    def number(self, value: float | None, attributes: bytes) -> bytes:
        """A data point of a gauge or a sum; None for a series that has ended.

        Sums of what hostile clients claim may be beyond 64 bits: they are written as doubles.

        Args:
            value: The value.
            attributes: As `encoded_attributes` writes them for a number.
        """
        if value is None:
            body = times(START, self.start_ns, TIME, self.end_ns) + NO_RECORDED_VALUE
        elif isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
            body = times_and_int(START, self.start_ns, TIME, self.end_ns, AS_INT, value)
        else:
            body = times_and_double(START, self.start_ns, TIME, self.end_ns, AS_DOUBLE, value)
        return delimited(POINT, attributes + body)

    def numbers(self, points: Mapping[Attributes, int | float]) -> bytes:
        """The data points of a gauge or a sum."""
        return b"".join(
            [
                self.number(value, encoded_attributes(NUMBER_ATTRIBUTE, attributes))
                for attributes, value in points.items()
            ]
        )

    def gauge(self, name: str, unit: str, points: Mapping[Attributes, int | float]) -> None:
        """Add a gauge; left out without points."""
        if points:
            self.encoded_gauge(name, unit, self.numbers(points))

    def encoded_gauge(self, name: str, unit: str, points: bytes) -> None:
        """Add a gauge of data points that `number` has written."""
        self.metrics.append(delimited(METRIC, metric_head(name, unit) + delimited(GAUGE, points)))

    def sum(self, name: str, unit: str, points: Mapping[Attributes, int | float]) -> None:
        """Add a monotonic sum of delta temporality; left out without points."""
        if points:
            whole = delimited(SUM, self.numbers(points) + DELTA + MONOTONIC)
            self.metrics.append(delimited(METRIC, metric_head(name, unit) + whole))

    def histogram(
        self, name: str, unit: str, bounds: Sequence[float], points: Iterable[Distribution]
    ) -> None:
        """Add a histogram of delta temporality; left out without points."""
        packed_bounds = delimited(BOUNDS, struct.pack(f"<{len(bounds)}d", *bounds))
        body = b"".join(
            [
                delimited(
                    POINT,
                    encoded_attributes(HISTOGRAM_ATTRIBUTE, attributes)
                    + histogram_head(
                        START, self.start_ns, TIME, self.end_ns, COUNT, sum(counts), TOTAL, total
                    )
                    + delimited(BUCKETS, struct.pack(f"<{len(counts)}Q", *counts))
                    + packed_bounds
                    + double(HISTOGRAM_MAX, largest),
                )
                for attributes, counts, total, largest in points
            ]
        )
        if body:
            self.metrics.append(
                delimited(METRIC, metric_head(name, unit) + delimited(HISTOGRAM, body + DELTA))
            )

    def payload(self, resource: Attributes | bytes, scope_name: str) -> bytes:
        """The MetricsData: one Resource, which may be serialized, and one scope."""
        scope = delimited(SCOPE, delimited(NAME, scope_name.encode()))
        serialized = resource if isinstance(resource, bytes) else encoded_resource(resource)
        entry = delimited(RESOURCE, serialized)
        entry += delimited(SCOPE_METRICS, scope + b"".join(self.metrics))
        return delimited(RESOURCE_METRICS, entry)


Distribution = tuple[Attributes, Sequence[int], float, float]
"""Attributes, counts of the buckets, the sum and the largest of the values."""
