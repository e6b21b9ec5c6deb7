"""Exponential histograms of OpenTelemetry as native histograms of Prometheus."""

from __future__ import annotations

import math
from typing import Final

from odradek.temporality.exponential import Buckets, ExponentialState, shifted
from odradek_prometheus.remote_write.sample import NativeHistogram

LEAST_SCHEMA: Final = -4
MOST_SCHEMA: Final = 8


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
        observations=state.count,
        total=total if state.has_sum else math.nan,
        schema=state.scale - steps,
        zero_threshold=state.zero_threshold,
        zero_count=state.zero_count,
        positive=runs(shifted(state.positive, steps)),
        negative=runs(shifted(state.negative, steps)),
    )


def runs(buckets: Buckets) -> list[tuple[int, list[int]]]:
    """Runs of buckets without a gap.

    Prometheus names a bucket by its upper bound, OpenTelemetry by its lower.
    """
    found: list[tuple[int, list[int]]] = []
    for index in sorted(buckets):
        if found and found[-1][0] + len(found[-1][1]) == index + 1:
            found[-1][1].append(buckets[index])
        else:
            found.append((index + 1, [buckets[index]]))
    return found
