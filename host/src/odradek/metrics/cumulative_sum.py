"""A running total; after org.apache.kafka.common.metrics.stats.CumulativeSum."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig


@dataclass(slots=True, eq=False)
class CumulativeSum:
    """All that was ever recorded."""

    config: MetricConfig = DEFAULT_CONFIG
    total: float = 0.0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value."""
        self.total += value

    def measure(self, now_ms: int) -> float:
        """The total."""
        return self.total
