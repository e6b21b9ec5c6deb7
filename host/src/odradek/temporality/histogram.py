"""Histograms with explicit bounds, whose counts add up as long as the bounds are the same."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint, HistogramDataPoint

MAX_COUNT: Final = 2**64 - 1
COUNT_BYTES: Final = 40
"""Approximate memory of a bucket."""


class HistogramState:
    """The counts of a histogram. The client's arrays have its sum."""

    __slots__ = ("bounds", "count", "counts", "has_sum", "highest", "lowest")

    def __init__(self, point: HistogramDataPoint) -> None:
        self.bounds = tuple(point.explicit_bounds)
        self.counts = list(point.bucket_counts)
        self.count: int = point.count
        self.has_sum = point.HasField("sum")
        self.lowest = point.min if point.HasField("min") else math.inf
        self.highest = point.max if point.HasField("max") else -math.inf

    @property
    def held_bytes(self) -> int:
        """Approximate size in memory."""
        return 300 + COUNT_BYTES * (len(self.bounds) + len(self.counts))

    def begins_again(self, point: HistogramDataPoint) -> bool:
        """Whether the point cannot be added because its bounds differ."""
        return self.bounds != tuple(point.explicit_bounds) or len(self.counts) != len(point.bucket_counts)

    def add(self, point: HistogramDataPoint) -> None:
        """Add a point with the same bounds."""
        self.counts = [ours + theirs for ours, theirs in zip(self.counts, point.bucket_counts, strict=True)]
        self.count += point.count
        self.has_sum = self.has_sum and point.HasField("sum")
        self.lowest = min(self.lowest, point.min) if point.HasField("min") else self.lowest
        self.highest = max(self.highest, point.max) if point.HasField("max") else self.highest

    def merge(self, point: HistogramDataPoint) -> None:
        """Add a point of other bounds too: only the common bounds stay, whose counts are exact."""
        if self.begins_again(point):
            bounds = tuple(sorted(set(self.bounds) & set(point.explicit_bounds)))
            counts = coarser(point.explicit_bounds, point.bucket_counts, point.count, bounds)
            self.counts = coarser(self.bounds, self.counts, self.count, bounds)
            self.bounds = bounds
            point.explicit_bounds[:] = bounds
            point.bucket_counts[:] = counts
        self.add(point)

    def point(self, total: float) -> HistogramDataPoint:
        """The state as a data point, with the sum from the arrays."""
        point = HistogramDataPoint()
        self.fill(point, total)
        return point

    def fill(self, point: HistogramDataPoint, total: float) -> None:
        """Write the state into a data point, with the sum from the arrays."""
        point.explicit_bounds[:] = self.bounds
        point.bucket_counts[:] = [min(count, MAX_COUNT) for count in self.counts]
        point.count = min(self.count, MAX_COUNT)
        fill_extremes(point, total if self.has_sum else None, self.lowest, self.highest)


def coarser(bounds: Sequence[float], counts: Sequence[int], count: int, kept: Sequence[float]) -> list[int]:
    """Counts by fewer bounds. A histogram without buckets has one, of all values."""
    found = [0] * (len(kept) + 1)
    for place, each in enumerate(counts or (count,)):
        index = len(kept) if place == len(bounds) else bisect_left(kept, bounds[place])
        found[index] += each
    return found


def fill_extremes(
    point: HistogramDataPoint | ExponentialHistogramDataPoint,
    total: float | None,
    lowest: float,
    highest: float,
) -> None:
    """Write sum, min and max; clear those that are unknown."""
    if total is None:
        point.ClearField("sum")
    else:
        point.sum = total
    if lowest <= highest:
        point.min, point.max = lowest, highest
    else:
        point.ClearField("min")
        point.ClearField("max")


def has_fitting_buckets(point: HistogramDataPoint) -> bool:
    """Whether the bounds rise, and there is one count more than bounds; a histogram without buckets has
    neither.
    """
    counts, bounds = len(point.bucket_counts), point.explicit_bounds
    if not counts:
        return not bounds
    edges = (-math.inf, *bounds, math.inf)
    return counts == len(bounds) + 1 and all(map(operator.lt, edges, edges[1:]))
