"""All sensors of one owner; after org.apache.kafka.common.metrics.Metrics, with a limit to their number."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig
from odradek.metrics.recording_level import RecordingLevel
from odradek.metrics.sensor import NEVER_MS, KafkaMetric, MetricName, Sensor, Stat

SWEEP_MS = 30_000
"""How often `Metrics.expire` is to be called (Kafka's ExpireSensorTask)."""
MAX_SENSORS = 50_000
"""Sensors that may expire, at once. Kafka has no such limit; names of clients cost them nothing."""
CANDIDATES = 16
"""Sensors among which the longest idle one makes room."""


class MeasuredMetric(NamedTuple):
    """One metric at one moment."""

    name: MetricName
    value: float
    """NaN for an average or a maximum of nothing."""


@dataclass(slots=True, eq=False)
class Metrics:
    """Sensors by name, metrics by name and tags.

    The owner calls `expire` every `SWEEP_MS`. At ``max_sensors`` a new sensor makes a long idle one go.
    """

    config: MetricConfig = DEFAULT_CONFIG
    level: RecordingLevel = RecordingLevel.INFO
    max_sensors: int = MAX_SENSORS
    sensors: dict[str, Sensor] = field(default_factory=dict)
    metrics: dict[MetricName, KafkaMetric] = field(default_factory=dict)
    lasting: dict[str, Sensor] = field(default_factory=dict)
    """Sensors that never expire."""

    def sensor(
        self,
        name: str,
        now_ms: int,
        *,
        expiry_ms: int = NEVER_MS,
        level: RecordingLevel = RecordingLevel.INFO,
        parents: Sequence[Sensor] = (),
    ) -> Sensor:
        """The sensor of that name: the one there is, or a new one."""
        known = self.find(name)
        if known is not None:
            return known
        sensor = Sensor(name, now_ms, expiry_ms, recording=level <= self.level, parents=parents)
        if expiry_ms == NEVER_MS:
            self.lasting[name] = sensor
        else:
            while len(self.sensors) >= self.max_sensors:
                self.make_room()
            self.sensors[name] = sensor
        return sensor

    def find(self, name: str) -> Sensor | None:
        """The sensor of that name, or None."""
        return self.sensors.get(name) or self.lasting.get(name)

    def add(self, sensor: Sensor, name: MetricName, stat: Stat, now_ms: int) -> bool:
        """Give a sensor a statistic to record into.

        Returns:
            False if the sensor has expired. True if it has the metric now or had it before; then its first
            statistic stays.

        Raises:
            ValueError: Another sensor has a metric of that name.
        """
        if sensor.removed or sensor.has_expired(now_ms):
            return False
        if name in self.metrics:
            if self.metrics[name] not in sensor.metrics:
                raise ValueError(f"metric {name.name} of {name.group} belongs to another sensor")
            return True
        metric = self.metrics[name] = KafkaMetric(name, stat)
        sensor.metrics.append(metric)
        return True

    def remove(self, name: str) -> None:
        """Forget a sensor and its metrics; harmless when it is unknown."""
        sensor = self.sensors.pop(name, None) or self.lasting.pop(name, None)
        if sensor is None:
            return
        sensor.removed = True
        for metric in sensor.metrics:
            del self.metrics[metric.name]

    def expire(self, now_ms: int) -> int:
        """Forget the sensors that were idle for too long; how many."""
        idle = [name for name, sensor in self.sensors.items() if sensor.has_expired(now_ms)]
        for name in idle:
            self.remove(name)
        return len(idle)

    def make_room(self) -> None:
        """Forget the longest idle of those that waited longest to be looked at; the others wait again."""
        names = list(itertools.islice(self.sensors, CANDIDATES))
        idlest = min(names, key=lambda name: self.sensors[name].last_record_ms)
        for name in names:
            if name != idlest:
                self.sensors[name] = self.sensors.pop(name)
        self.remove(idlest)

    def measured(self, now_ms: int) -> Iterator[MeasuredMetric]:
        """Every metric as it is now."""
        for metric in list(self.metrics.values()):  # a scrape may come from another thread
            yield MeasuredMetric(metric.name, metric.value(now_ms))
