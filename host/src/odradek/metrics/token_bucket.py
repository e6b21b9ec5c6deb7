"""Tokens that refill at the rate of the quota; after org.apache.kafka.common.metrics.stats.TokenBucket.

The bucket holds what the quota grants in all its windows (samples x window x bound): that is the burst.
"""

from __future__ import annotations

from dataclasses import dataclass

from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig
from odradek.metrics.quota import Quota

UNLIMITED_TOKENS = float(2**63 - 1)
"""Long.MAX_VALUE: what a bucket without a quota holds."""


@dataclass(slots=True, eq=False)
class TokenBucket:
    """Starts full. May go far below zero; a negative record gives credit back, up to the burst.

    A new quota keeps the tokens; they are capped at the next refill. Measuring refills.
    """

    config: MetricConfig = DEFAULT_CONFIG
    tokens: float = 0.0
    last_update_ms: int | None = None

    def record(self, value: float, now_ms: int) -> None:
        """Take tokens; nothing happens without a quota."""
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
        """Add what the time since the last look is worth."""
        burst = self.burst(quota)
        if self.last_update_ms is None:
            # Kafka begins at the epoch, which fills any bucket.
            self.tokens = burst
        else:
            # A clock that is set back costs nobody tokens; Kafka takes them.
            earned = quota.bound * max(0, now_ms - self.last_update_ms) / 1000
            self.tokens = min(burst, self.tokens + earned)
        self.last_update_ms = now_ms
