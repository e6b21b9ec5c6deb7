"""The windows and the bound of a metric; after org.apache.kafka.common.metrics.MetricConfig."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.metrics.quota import Quota

UNLIMITED_EVENTS = 2**63 - 1
"""Long.MAX_VALUE: the number of events never ends a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricConfig:
    """Number and length of the windows of a sampled statistic, and the bound on it."""

    samples: int = 2
    """Number of windows (``metrics.num.samples``)."""
    time_window_ms: int = 30_000
    """Length of one window (``metrics.sample.window.ms``)."""
    event_window: int = UNLIMITED_EVENTS
    """A window also ends after this many events."""
    quota: Quota | None = None
    """The bound that `odradek.metrics.sensor.Sensor.check_quotas` checks."""


DEFAULT_CONFIG = MetricConfig()
