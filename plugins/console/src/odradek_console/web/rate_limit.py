"""A bound for how often something happens, for each of many keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_KEYS: Final = 10_000
ENOUGH: Final = 1 - 1e-9
"""One, as sums of fractions reach it."""


class RateLimit:
    """A token bucket for each key. Beyond the bound of keys, the one used least recently is forgotten.

    Args:
        per_s: What is added to a bucket in a second.
        burst: What a bucket holds.
        now_s: A monotonic clock.
        most_keys: The number of buckets.
    """

    def __init__(
        self, per_s: float, burst: float, now_s: Callable[[], float], most_keys: int = MOST_KEYS
    ) -> None:
        self.per_s = per_s
        self.burst = burst
        self.now_s = now_s
        self.most_keys = most_keys
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The content of a bucket, and the time for which it holds."""

    def take(self, key: str) -> float:
        """Take one out if there is one; otherwise return the seconds until there is."""
        now_s = self.now_s()
        left, at_s = self.buckets.get(key, (self.burst, now_s))
        left = min(self.burst, left + (now_s - at_s) * self.per_s)
        if left < ENOUGH:
            return (1 - left) / self.per_s
        self.buckets[key] = left - 1, now_s
        self.buckets.move_to_end(key)
        if len(self.buckets) > self.most_keys:
            self.buckets.popitem(last=False)
        return 0.0
