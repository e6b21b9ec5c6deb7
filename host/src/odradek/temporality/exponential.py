"""Exponential histograms: merged at the lower of two scales, without losing a count.

Bucket i of scale s holds values above 2^(i / 2^s) and up to 2^((i + 1) / 2^s). Halving the resolution puts
the buckets 2i and 2i + 1 into bucket i exactly, so an index moves to a lower scale by an arithmetic shift.
"""

from __future__ import annotations

import math
from typing import Final

from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint

from odradek.temporality.histogram import COUNT_BYTES, MAX_COUNT, fill_extremes

MAX_BUCKETS: Final = 160
"""Limit of the span of the buckets of one sign, as in OpenTelemetry's SDKs."""
MIN_SCALE: Final = -10
MAX_SCALE: Final = 20
"""The scales of OpenTelemetry's SDKs."""
MAX_INDEX: Final = 2**31 - 1

Buckets = dict[int, int]
"""Counts by index, without zeros."""


class ExponentialState:
    """The counts of an exponential histogram. The client's arrays have its sum.

    The buckets and the zero count add up to the count at all times, if they do in each point.
    """

    __slots__ = (
        "count",
        "has_sum",
        "highest",
        "lowest",
        "negative",
        "positive",
        "scale",
        "zero_count",
        "zero_threshold",
    )

    def __init__(self, point: ExponentialHistogramDataPoint) -> None:
        self.scale: int = point.scale
        self.zero_threshold: float = point.zero_threshold
        self.zero_count: int = point.zero_count
        self.count: int = point.count
        self.has_sum = point.HasField("sum")
        self.lowest = point.min if point.HasField("min") else math.inf
        self.highest = point.max if point.HasField("max") else -math.inf
        self.positive = buckets_of(point.positive, 0)
        self.negative = buckets_of(point.negative, 0)
        self.shrink()

    @property
    def held_bytes(self) -> int:
        """Approximate size in memory."""
        return 700 + 3 * COUNT_BYTES * (len(self.positive) + len(self.negative))

    def begins_again(self, point: ExponentialHistogramDataPoint) -> bool:
        """Any point can be added."""
        return False

    def add(self, point: ExponentialHistogramDataPoint) -> None:
        scale = min(self.scale, point.scale)
        self.lower_by(self.scale - scale)
        for buckets, theirs in ((self.positive, point.positive), (self.negative, point.negative)):
            for index, count in buckets_of(theirs, point.scale - scale).items():
                buckets[index] = buckets.get(index, 0) + count
        self.zero_threshold = max(self.zero_threshold, point.zero_threshold)
        self.zero_count += point.zero_count
        self.count += point.count
        self.has_sum = self.has_sum and point.HasField("sum")
        self.lowest = min(self.lowest, point.min) if point.HasField("min") else self.lowest
        self.highest = max(self.highest, point.max) if point.HasField("max") else self.highest
        self.shrink()

    def shrink(self) -> None:
        """Lower the scale until the buckets fit, then move those below the threshold to the zero count."""
        while max(span(self.positive), span(self.negative)) > MAX_BUCKETS:
            self.lower_by(1)
        if self.zero_threshold > 0:
            self.fold_into_zero()

    def lower_by(self, steps: int) -> None:
        """Lower the scale."""
        if steps:
            self.scale -= steps
            self.positive = shifted(self.positive, steps)
            self.negative = shifted(self.negative, steps)

    def fold_into_zero(self) -> None:
        """Move each bucket that begins below the threshold to the zero count.

        A bucket that straddles the threshold moves whole and raises it, which may reach another bucket of the
        other sign.
        """
        width = 2.0**-self.scale
        threshold = math.log2(self.zero_threshold)
        for buckets in (self.positive, self.negative, self.positive):
            for index in sorted(buckets):
                if index * width >= threshold:
                    break
                self.zero_count += buckets.pop(index)
                if (index + 1) * width > threshold:
                    threshold = (index + 1) * width
                    self.zero_threshold = 2.0**threshold if threshold < 1024 else math.inf

    def point(self, total: float) -> ExponentialHistogramDataPoint:
        """The state as a data point, with the sum from the arrays."""
        point = ExponentialHistogramDataPoint()
        self.fill(point, total)
        return point

    def fill(self, point: ExponentialHistogramDataPoint, total: float) -> None:
        """Write the state into a data point, with the sum from the arrays."""
        point.scale = self.scale
        point.zero_threshold = self.zero_threshold
        point.zero_count, point.count = min(self.zero_count, MAX_COUNT), min(self.count, MAX_COUNT)
        for buckets, theirs in ((self.positive, point.positive), (self.negative, point.negative)):
            theirs.Clear()
            if buckets:
                first, last = min(buckets), max(buckets)
                theirs.offset = first
                counts = [min(buckets.get(index, 0), MAX_COUNT) for index in range(first, last + 1)]
                theirs.bucket_counts.extend(counts)
        fill_extremes(point, total if self.has_sum else None, self.lowest, self.highest)


def buckets_of(dense: ExponentialHistogramDataPoint.Buckets, steps: int) -> Buckets:
    """The counts of a data point, at a scale that is lower by some steps."""
    buckets: Buckets = {}
    for index, count in enumerate(dense.bucket_counts, dense.offset):
        if count:
            buckets[index >> steps] = buckets.get(index >> steps, 0) + count
    return buckets


def shifted(buckets: Buckets, steps: int) -> Buckets:
    """The same counts at a lower scale."""
    lower: Buckets = {}
    for index, count in buckets.items():
        lower[index >> steps] = lower.get(index >> steps, 0) + count
    return lower


def span(buckets: Buckets) -> int:
    """How many buckets there are from the first to the last."""
    return max(buckets) - min(buckets) + 1 if buckets else 0


def has_fitting_scale(point: ExponentialHistogramDataPoint) -> bool:
    """Whether scale, indexes and threshold are in the range of the specification."""
    last = max(
        point.positive.offset + len(point.positive.bucket_counts),
        point.negative.offset + len(point.negative.bucket_counts),
    )
    return (
        MIN_SCALE <= point.scale <= MAX_SCALE and last <= MAX_INDEX and 0 <= point.zero_threshold < math.inf
    )
