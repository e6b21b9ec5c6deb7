"""A bound on a metric; after org.apache.kafka.common.metrics.Quota."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quota:
    """An upper bound. A value equal to it is acceptable."""

    bound: float

    def acceptable(self, value: float) -> bool:
        """Whether a measured value is within the bound."""
        return value <= self.bound
