"""Exponential histograms of OpenTelemetry as native histograms of Prometheus."""

from __future__ import annotations

import math
from typing import Final

from odradek.temporality.exponential import Buckets, ExponentialState, shifted
from odradek_prometheus.remote_write.sample import NativeHistogram

LEAST_SCHEMA: Final = -4
MOST_SCHEMA: Final = 8
INT64_MAX: Final = 2**63 - 1
"""The message has differences of counts, which are signed. Larger counts would break the whole request."""


def native_histogram(state: ExponentialState, total: float) -> NativeHistogram | None:
    """The native histogram; None if its buckets are too wide for Prometheus.

    Args:
        state: The counts.
        total: Their sum.
    """
    if state.scale < LEAST_SCHEMA:
        return None
    steps = max(0, state.scale - MOST_SCHEMA)
    return NativeHistogram(
        observations=min(state.count, INT64_MAX),
        total=total if state.has_sum else math.nan,
        schema=state.scale - steps,
        zero_threshold=state.zero_threshold,
        zero_count=min(state.zero_count, INT64_MAX),
        positive=runs(shifted(state.positive, steps)),
        negative=runs(shifted(state.negative, steps)),
    )


def runs(buckets: Buckets) -> list[tuple[int, list[int]]]:
    """Runs of buckets without a gap.

    Prometheus names a bucket by its upper bound, OpenTelemetry by its lower.
    """
    found: list[tuple[int, list[int]]] = []
    for index in sorted(buckets):
        count = min(buckets[index], INT64_MAX)
        if found and found[-1][0] + len(found[-1][1]) == index + 1:
            found[-1][1].append(count)
        else:
            found.append((index + 1, [count]))
    return found
