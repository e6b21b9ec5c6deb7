"""A bound on a metric; after org.apache.kafka.common.metrics.Quota."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quota:
    """An upper or lower bound. A value equal to the bound is acceptable."""

    bound: float
    upper: bool = True

    def acceptable(self, value: float) -> bool:
        """Whether a measured value is within the bound."""
        return value <= self.bound if self.upper else value >= self.bound
