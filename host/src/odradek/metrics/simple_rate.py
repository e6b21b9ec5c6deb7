"""Units per second without padding; after org.apache.kafka.common.metrics.stats.SimpleRate."""

from __future__ import annotations

from odradek.metrics.rate import Rate


class SimpleRate(Rate):
    """Divides by the time since the oldest sample started, at least one window."""

    __slots__ = ()

    def window_size_ms(self, now_ms: int) -> int:
        """The milliseconds that the statistic covers, at least one window."""
        self.stat.purge(now_ms)
        elapsed_ms = now_ms - self.stat.oldest(now_ms).start_ms
        return max(elapsed_ms, self.stat.config.time_window_ms)
