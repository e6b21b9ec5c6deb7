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

    def wait_s(self, key: str) -> float:
        """Seconds until there is something for a key; 0 if there is now."""
        left, at_s = self.buckets.get(key, (self.burst, 0.0))
        left += (self.now_s() - at_s) * self.per_s
        return (1 - left) / self.per_s if left < ENOUGH else 0.0

    def take(self, key: str) -> float:
        """Take one out if there is one; otherwise return the seconds until there is."""
        wait_s = self.wait_s(key)
        if wait_s > 0:
            return wait_s
        now_s = self.now_s()
        left, at_s = self.buckets.pop(key, (self.burst, now_s))
        self.buckets[key] = min(self.burst, left + (now_s - at_s) * self.per_s) - 1, now_s
        if len(self.buckets) > self.most_keys:
            self.buckets.popitem(last=False)
        return 0.0
