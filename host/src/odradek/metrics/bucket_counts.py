"""How often a measured value fell into which range, since the start."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence


class BucketCounts:
    """Counts of values by range.

    Args:
        bounds: The upper bounds of the ranges, inclusive and ascending; a last range has everything above.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        """The sum of the values."""

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def up_to(self) -> Iterator[tuple[str, int]]:
        """Yield each bound, as Prometheus writes it in the label ``le``, and how many values are up to it."""
        number = 0
        for bound, count in zip((*self.bounds, None), self.counts, strict=True):
            number += count
            yield "+Inf" if bound is None else f"{bound:g}", number
