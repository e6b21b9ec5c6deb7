"""Events per second; after org.apache.kafka.common.metrics.stats.Rate."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.sampled_stat import SampledStat


@dataclass(slots=True, eq=False)
class Rate:
    """A sampled statistic per second.

    With n samples the rate divides by at least n - 1 full windows, however recently it started. Otherwise the
    first events would look like a spike.
    """

    stat: SampledStat

    @property
    def config(self) -> MetricConfig:
        """Windows and bound of the statistic."""
        return self.stat.config

    @config.setter
    def config(self, config: MetricConfig) -> None:
        self.stat.config = config

    def record(self, value: float, now_ms: int) -> None:
        """Add one value to the statistic."""
        self.stat.record(value, now_ms)

    def window_size_ms(self, now_ms: int) -> int:
        """The milliseconds that the statistic covers, at least one."""
        self.stat.purge(now_ms)
        config = self.stat.config
        elapsed_ms = now_ms - self.stat.oldest(now_ms).start_ms
        full_windows = int(elapsed_ms / config.time_window_ms)
        missing_windows = config.samples - 1 - full_windows
        if missing_windows > 0:
            elapsed_ms += missing_windows * config.time_window_ms
        return max(elapsed_ms, 1)

    def measure(self, now_ms: int) -> float:
        """Units per second."""
        value = self.stat.measure(now_ms)
        return value / (self.window_size_ms(now_ms) / 1000)
