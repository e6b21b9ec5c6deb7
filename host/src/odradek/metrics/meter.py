"""A rate and a total; after org.apache.kafka.common.metrics.stats.Meter over a WindowedCount."""

from __future__ import annotations

from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig
from odradek.metrics.rate import Rate
from odradek.metrics.windowed_count import WindowedCount


class Meter:
    """Counts occurrences: per second over the windows, and in total."""

    __slots__ = ("total", "windowed")

    def __init__(self, config: MetricConfig = DEFAULT_CONFIG) -> None:
        self.windowed = WindowedCount(config)
        self.total = 0

    def record(self, now_ms: int) -> None:
        """Count one occurrence."""
        self.total += 1
        self.windowed.record(1.0, now_ms)

    def rate(self, now_ms: int) -> float:
        """Occurrences per second."""
        return Rate(self.windowed).measure(now_ms)
