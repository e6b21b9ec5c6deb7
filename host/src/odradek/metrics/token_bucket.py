"""Tokens that refill at the rate of the quota; after org.apache.kafka.common.metrics.stats.TokenBucket.

The burst, the size of a full bucket, is what the quota grants in all windows: samples x window x bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig
from odradek.metrics.quota import Quota

UNLIMITED_TOKENS = float(2**63 - 1)
"""Long.MAX_VALUE: the tokens of a bucket without a quota."""


@dataclass(slots=True, eq=False)
class TokenBucket:
    """Starts full and may go far below zero. Recording a negative value returns tokens, up to the burst.

    A changed quota keeps the tokens; the next refill caps them at the new burst. Measuring refills.
    """

    config: MetricConfig = DEFAULT_CONFIG
    tokens: float = 0.0
    last_update_ms: int | None = None

    def record(self, value: float, now_ms: int) -> None:
        """Take tokens. Does nothing without a quota."""
        quota = self.config.quota
        if quota is not None:
            self.refill(quota, now_ms)
            self.tokens = min(self.burst(quota), self.tokens - value)

    def measure(self, now_ms: int) -> float:
        """Tokens left."""
        quota = self.config.quota
        if quota is None:
            return UNLIMITED_TOKENS
        self.refill(quota, now_ms)
        return self.tokens

    def burst(self, quota: Quota) -> float:
        """Tokens of a full bucket."""
        config = self.config
        return config.samples * (config.time_window_ms / 1000) * quota.bound

    def refill(self, quota: Quota, now_ms: int) -> None:
        """Add the tokens earned since the last refill."""
        burst = self.burst(quota)
        if self.last_update_ms is None:
            # Kafka refills from the epoch on, which fills any bucket.
            self.tokens = burst
        else:
            # A clock that is set back earns nothing; in Kafka it takes tokens away.
            earned = quota.bound * max(0, now_ms - self.last_update_ms) / 1000
            self.tokens = min(burst, self.tokens + earned)
        self.last_update_ms = now_ms
