"""A sensor records into several statistics at once and checks their quotas.

After org.apache.kafka.common.metrics.Sensor and KafkaMetric. A single thread records, so record and check
need no lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.quota import Quota
from odradek.metrics.token_bucket import TokenBucket

NEVER_MS = 2**63 - 1
"""Expiry of a sensor that is never removed."""


class Stat(Protocol):
    """A statistic with windows and an optional bound."""

    @property
    def config(self) -> MetricConfig:
        """Windows and bound."""

    @config.setter
    def config(self, config: MetricConfig) -> None: ...

    def record(self, value: float, now_ms: int) -> None:
        """Record a value."""

    def measure(self, now_ms: int) -> float:
        """The current value of the statistic."""


class MetricName(NamedTuple):
    """The identity of a metric."""

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, name: str, group: str, tags: Mapping[str, str] | None = None) -> MetricName:
        """A name with its tags in the given order."""
        return cls(name, group, tuple(tags.items()) if tags else ())


@dataclass(slots=True, eq=False)
class KafkaMetric:
    """A statistic with a name."""

    name: MetricName
    stat: Stat

    @property
    def config(self) -> MetricConfig:
        """Windows and bound. A new config applies from the next record or check; recorded values stay."""
        return self.stat.config

    @config.setter
    def config(self, config: MetricConfig) -> None:
        self.stat.config = config

    def value(self, now_ms: int) -> float:
        """The measured value."""
        return self.stat.measure(now_ms)


class QuotaViolation(Exception):
    """A metric is beyond its bound. The value that caused the violation has been recorded.

    Args:
        metric: The first metric of the sensor that is beyond its bound.
        value: The measured value.
        bound: The bound.
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
    """A sensor that records nothing for longer than this is removed."""
    metrics: list[KafkaMetric] = field(default_factory=list)
    removed: bool = False
    generation: int = 0
    """The generation of the owner's limits that the metrics are configured with."""

    def record(self, value: float, now_ms: int, check_quotas: bool = True) -> None:
        """Record a value into every statistic.

        Raises:
            QuotaViolation: The value was recorded, and a metric is now beyond its bound.
        """
        self.last_record_ms = now_ms
        for metric in self.metrics:
            metric.stat.record(value, now_ms)
        if check_quotas:
            self.check_quotas(now_ms)

    def check_quotas(self, now_ms: int) -> None:
        """Compare every metric with its bound.

        Raises:
            QuotaViolation: For the first metric beyond its bound.
        """
        for metric in self.metrics:
            stat = metric.stat
            quota = stat.config.quota
            if quota is not None:
                value = stat.measure(now_ms)
                if violates(stat, value, quota):
                    raise QuotaViolation(metric, value, quota.bound)

    def has_expired(self, now_ms: int) -> bool:
        """Whether the sensor has been idle for longer than its expiry."""
        return now_ms - self.last_record_ms > self.expiry_ms


def violates(stat: Stat, value: float, quota: Quota) -> bool:
    """Whether a value violates a quota. A token bucket does once it is overdrawn, whatever the bound."""
    return value < 0 if isinstance(stat, TokenBucket) else not quota.acceptable(value)
