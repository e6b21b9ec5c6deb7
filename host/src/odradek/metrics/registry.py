"""All sensors of one owner; after org.apache.kafka.common.metrics.Metrics, with a limit on their number."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.metrics.sensor import NEVER_MS, KafkaMetric, MetricName, Sensor, Stat

SWEEP_MS = 30_000
"""How often the owner must call `Metrics.expire` (Kafka's ExpireSensorTask)."""
MAX_SENSORS = 50_000
"""The most sensors with an expiry. Kafka has no limit, but a client can invent names for free."""
MAX_NAME_CHARS = 8_388_608
"""The most characters in all their names together: one client id may have 32767."""
CANDIDATES = 16
"""Number of sensors from which the longest idle one is evicted."""


class MeasuredMetric(NamedTuple):
    """One metric at one moment."""

    name: MetricName
    value: float
    """NaN for an average or a maximum of nothing."""


@dataclass(slots=True, eq=False)
class Metrics:
    """Sensors by name, metrics by name and tags.

    The owner calls `expire` every `SWEEP_MS`. At ``max_sensors``, or when the names become too long in total,
    a new sensor evicts a long idle one.
    """

    max_sensors: int = MAX_SENSORS
    sensors: dict[str, Sensor] = field(default_factory=dict)
    metrics: dict[MetricName, KafkaMetric] = field(default_factory=dict)
    lasting: dict[str, Sensor] = field(default_factory=dict)
    """Sensors that never expire."""
    ring: deque[Sensor] = field(default_factory=deque)
    """Sensors that can expire, in the order of inspection. A removed sensor stays until its turn."""
    name_chars: int = 0
    """Total length of the names of sensors that can expire."""

    def sensor(self, name: str, now_ms: int, *, expiry_ms: int = NEVER_MS) -> Sensor:
        """Return the sensor of this name; create it if it does not exist."""
        known = self.find(name)
        if known is not None:
            return known
        sensor = Sensor(name, now_ms, expiry_ms)
        if expiry_ms == NEVER_MS:
            self.lasting[name] = sensor
        else:
            while self.sensors and self.is_full(len(name)):
                self.make_room()
            self.sensors[name] = sensor
            self.ring.append(sensor)
            self.name_chars += len(name)
        return sensor

    def is_full(self, name_chars: int) -> bool:
        """Whether there is no room for a sensor with a name of this length."""
        return len(self.sensors) >= self.max_sensors or self.name_chars + name_chars > MAX_NAME_CHARS

    def find(self, name: str) -> Sensor | None:
        """The sensor of this name, or None."""
        return self.sensors.get(name) or self.lasting.get(name)

    def add(self, sensor: Sensor, name: MetricName, stat: Stat, now_ms: int) -> bool:
        """Add a statistic to a sensor.

        Returns:
            False if the sensor has expired, else True. A sensor that already has the metric keeps its first
            statistic.

        Raises:
            ValueError: Another sensor has a metric of this name.
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
        """Remove a sensor and its metrics. Does nothing if the sensor is unknown."""
        sensor = self.sensors.pop(name, None)
        if sensor is not None:
            self.name_chars -= len(name)
        else:
            sensor = self.lasting.pop(name, None)
        if sensor is None:
            return
        sensor.removed = True
        for metric in sensor.metrics:
            del self.metrics[metric.name]

    def expire(self, now_ms: int, most: int = sys.maxsize) -> int:
        """Remove sensors that were idle for too long and return how many. Each call inspects the next
        ``most`` sensors.
        """
        expired = 0
        for sensor in self.next_sensors(min(most, len(self.ring))):
            if sensor.has_expired(now_ms):
                self.remove(sensor.name)
                expired += 1
            else:
                self.ring.append(sensor)
        return expired

    def make_room(self) -> None:
        """Evict the longest idle of the next `CANDIDATES` sensors; the others go to the end of the ring."""
        candidates = list(self.next_sensors(CANDIDATES))
        idlest = min(candidates, key=lambda sensor: sensor.last_record_ms)
        self.ring.extend(sensor for sensor in candidates if sensor is not idlest)
        self.remove(idlest.name)

    def next_sensors(self, most: int) -> Iterator[Sensor]:
        """Take up to ``most`` sensors out of the ring, and drop removed ones on the way."""
        while most > 0 and self.ring:
            sensor = self.ring.popleft()
            if not sensor.removed:
                most -= 1
                yield sensor

    def measured(self, now_ms: int) -> Iterator[MeasuredMetric]:
        """Measure every metric."""
        for metric in list(self.metrics.values()):  # metrics may come and go while the caller iterates
            yield MeasuredMetric(metric.name, metric.value(now_ms))
