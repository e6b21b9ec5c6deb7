"""The series of a classic histogram of Prometheus: one for each bucket, the count, and the sum."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.temporality.exponential import ExponentialState
from odradek.temporality.histogram import HistogramState


def histogram_parts(
    state: HistogramState | ExponentialState, total: float
) -> Iterator[tuple[str, str, float]]:
    """The suffix of its name, the value of its label ``le``, and the value of each series.

    The label is empty for the count and the sum, which have none. Exponential buckets are left out.

    Args:
        state: The counts.
        total: The sum of all values.
    """
    count = 0
    if isinstance(state, HistogramState):
        for bound, more in zip(state.bounds, state.counts, strict=False):
            count += more
            yield "_bucket", repr(bound), count
    yield "_bucket", "+Inf", state.count
    yield "_count", "", state.count
    if state.has_sum:
        yield "_sum", "", total
