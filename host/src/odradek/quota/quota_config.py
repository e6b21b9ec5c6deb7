"""The windows of the quotas, and the numbers that mean "no limit"; after QuotaConfig of Kafka's server."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.quota import Quota

UNLIMITED = float(2**63 - 1)
"""Long.MAX_VALUE: the bound of an entity without a quota."""
UNBOUNDED = sys.float_info.max
"""Double.MAX_VALUE: what an entity without a quota may use in all windows."""
MAX_INT = 2**31 - 1
SENSOR_EXPIRY_MS = 3_600_000
"""An entity that did nothing for an hour begins anew (InactiveSensorExpirationTimeSeconds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig:
    """``quota.window.num`` and ``quota.window.size.seconds``, or their counterparts with a prefix."""

    samples: int = 11
    window_size_s: int = 1

    def metric_config(self, bound: float) -> MetricConfig:
        """The windows with a bound."""
        return MetricConfig(
            samples=self.samples, time_window_ms=self.window_size_s * 1000, quota=Quota(bound)
        )

    @property
    def windows(self) -> MetricConfig:
        """The windows without a bound."""
        return MetricConfig(samples=self.samples, time_window_ms=self.window_size_s * 1000)
