"""A bound on a metric; after org.apache.kafka.common.metrics.Quota."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quota:
    """Values up to the bound (or down to it) are fine; the bound itself is never a violation."""

    bound: float
    upper: bool = True

    def acceptable(self, value: float) -> bool:
        """Whether a measured value keeps the quota."""
        return value <= self.bound if self.upper else value >= self.bound
