"""The windows of the quotas, and the numbers that mean "no limit"; after QuotaConfig of Kafka's server."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.quota import Quota
from odradek.settings.kinds import INT, Whole
from odradek.settings.setting import setting

UNLIMITED = float(2**63 - 1)
"""Long.MAX_VALUE: the bound of an entity without a quota."""
UNBOUNDED = sys.float_info.max
"""Double.MAX_VALUE: the budget of an entity without a quota in all windows."""
SENSOR_EXPIRY_MS = 3_600_000
"""An entity that was idle for an hour is forgotten (InactiveSensorExpirationTimeSeconds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig:
    """The windows of one kind of quota; each kind has its own prefix for the keys."""

    # fmt: off
    samples: int = setting(
        "quota.window.num", Whole(INT, 1), 11,
        "Number of windows used to measure {subject}, including the current one.", unit="windows",
    )
    window_size_s: int = setting(
        "quota.window.size.seconds", Whole(INT, 1), 1,
        "Length of each window used to measure {subject}.", unit="s",
    )
    # fmt: on

    def metric_config(self, bound: float) -> MetricConfig:
        """The windows with a bound."""
        return MetricConfig(
            samples=self.samples, time_window_ms=self.window_size_s * 1000, quota=Quota(bound)
        )

    @property
    def windows(self) -> MetricConfig:
        """The windows without a bound."""
        return MetricConfig(samples=self.samples, time_window_ms=self.window_size_s * 1000)
