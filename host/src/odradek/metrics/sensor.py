"""What records into several statistics at once, and holds them to their quotas.

After org.apache.kafka.common.metrics.Sensor and KafkaMetric. One thread records: record and check need no
lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.quota import Quota
from odradek.metrics.token_bucket import TokenBucket

NEVER_MS = 2**63 - 1
"""Expiry of a sensor that stays."""


class Stat(Protocol):
    """A statistic with windows and perhaps a bound."""

    @property
    def config(self) -> MetricConfig:
        """Windows and bound."""

    @config.setter
    def config(self, config: MetricConfig) -> None: ...

    def record(self, value: float, now_ms: int) -> None:
        """Take a value in."""

    def measure(self, now_ms: int) -> float:
        """What it amounts to now."""


class MetricName(NamedTuple):
    """What tells a metric from all others."""

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, name: str, group: str, tags: Mapping[str, str] | None = None) -> MetricName:
        """A name with its tags in their order."""
        return cls(name, group, tuple(tags.items()) if tags else ())


@dataclass(slots=True, eq=False)
class KafkaMetric:
    """A statistic with a name."""

    name: MetricName
    stat: Stat

    @property
    def config(self) -> MetricConfig:
        """Windows and bound; a new one is used by the next record or check, what was recorded stays."""
        return self.stat.config

    @config.setter
    def config(self, config: MetricConfig) -> None:
        self.stat.config = config

    def value(self, now_ms: int) -> float:
        """The measured value."""
        return self.stat.measure(now_ms)


class QuotaViolation(Exception):
    """A metric is beyond its bound. What led to it has been recorded.

    Args:
        metric: The first metric of the sensor that is.
        value: What was measured.
        bound: What is allowed.
    """

    def __init__(self, metric: KafkaMetric, value: float, bound: float) -> None:
        super().__init__(f"{metric.name.name} is {value}, bound {bound}")
        self.metric = metric
        self.value = value
        self.bound = bound


@dataclass(slots=True, eq=False)
class Sensor:
    """Named statistics that are recorded together."""

    name: str
    last_record_ms: int
    expiry_ms: int = NEVER_MS
    """A sensor that recorded nothing for longer than that is forgotten."""
    recording: bool = True
    parents: Sequence[Sensor] = ()
    metrics: list[KafkaMetric] = field(default_factory=list)
    removed: bool = False
    generation: int = 0
    """Of its owner's limits: which ones the metrics were configured with."""

    def record(self, value: float, now_ms: int, check_quotas: bool = True) -> None:
        """Take a value into every statistic, then into the parents.

        Raises:
            QuotaViolation: It was recorded, and is too much.
        """
        if not self.recording:
            return
        self.last_record_ms = now_ms
        for metric in self.metrics:
            metric.stat.record(value, now_ms)
        if check_quotas:
            self.check_quotas(now_ms)
        for parent in self.parents:
            parent.record(value, now_ms, check_quotas)

    def check_quotas(self, now_ms: int) -> None:
        """Compare every metric with its bound.

        Raises:
            QuotaViolation: Of the first metric beyond it.
        """
        for metric in self.metrics:
            stat = metric.stat
            quota = stat.config.quota
            if quota is not None:
                value = stat.measure(now_ms)
                if violates(stat, value, quota):
                    raise QuotaViolation(metric, value, quota.bound)

    def has_expired(self, now_ms: int) -> bool:
        """Whether it was idle for longer than it is kept."""
        return now_ms - self.last_record_ms > self.expiry_ms


def violates(stat: Stat, value: float, quota: Quota) -> bool:
    """A bucket violates once it is overdrawn, anything else when the value is beyond the bound."""
    return value < 0 if isinstance(stat, TokenBucket) else not quota.acceptable(value)
