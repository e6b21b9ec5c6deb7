"""Bandwidth of replication and of moves between log directories; after kafka.server.ReplicationQuotaManager.

The limit applies to marked replicas only, so that a reassignment does not starve the replicas in sync.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.registry import MeasuredMetric, Metrics
from odradek.metrics.sensor import MetricName, QuotaViolation, Sensor
from odradek.metrics.simple_rate import SimpleRate
from odradek.metrics.windowed_sum import WindowedSum
from odradek.quota.quota_config import SENSOR_EXPIRY_MS, UNLIMITED, QuotaConfig
from odradek.waiting.clock import Clock

ALL_REPLICAS = "*"


class ReplicationQuotaType(Enum):
    """The kind of traffic that is limited. The value is the group of its metrics."""

    LEADER = "LeaderReplication"
    FOLLOWER = "FollowerReplication"
    ALTER_LOG_DIRS = "AlterLogDirsReplication"


class ReplicationQuotaManager:
    """One budget for all marked replicas of this host.

    Recording never checks the quota; the caller asks `is_quota_exceeded` before it copies.
    """

    def __init__(self, quota_type: ReplicationQuotaType, config: QuotaConfig, clock: Clock) -> None:
        self.quota_type = quota_type
        self.config = config
        self.clock = clock
        self.bound: float | None = None
        self.metrics = Metrics()
        self.marked: dict[str, frozenset[int] | None] = {}

    def update_quota(self, bound_bytes_per_s: float | None) -> None:
        """Set the rate, or remove it (None). Recorded values stay."""
        self.bound = bound_bytes_per_s
        sensor = self.metrics.find(self.quota_type.value)
        if sensor is not None:
            sensor.metrics[0].config = self.metric_config()

    @property
    def upper_bound(self) -> float:
        """Bytes per second; `UNLIMITED` if no rate is set."""
        return UNLIMITED if self.bound is None else self.bound

    def mark_throttled(self, topic: str, partitions: Collection[int] | None = None) -> None:
        """Throttle exactly these partitions of a topic; None throttles all of them."""
        self.marked[topic] = None if partitions is None else frozenset(partitions)

    def remove_throttle(self, topic: str) -> None:
        """Stop throttling a topic."""
        self.marked.pop(topic, None)

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Whether a partition is throttled."""
        if topic not in self.marked:
            return False
        partitions = self.marked[topic]
        return partitions is None or partition in partitions

    def is_quota_exceeded(self, now_ms: int | None = None) -> bool:
        """Whether the rate is above its bound."""
        if self.bound is None:
            return False
        now_ms = self.clock.monotonic_ms() if now_ms is None else now_ms
        try:
            self.sensor(now_ms).check_quotas(now_ms)
        except QuotaViolation:
            return True
        return False

    def skips(self, topic: str, partition: int, in_sync: bool, now_ms: int | None = None) -> bool:
        """Whether a follower's fetch must skip this partition now.

        A follower in sync is never throttled (ReplicaManager.shouldLeaderThrottle).
        """
        return not in_sync and self.is_throttled(topic, partition) and self.is_quota_exceeded(now_ms)

    def record(self, value: float, now_ms: int | None = None) -> None:
        """Record bytes of a throttled partition."""
        now_ms = self.clock.monotonic_ms() if now_ms is None else now_ms
        self.sensor(now_ms).record(value, now_ms, check_quotas=False)

    def metric_config(self) -> MetricConfig:
        """The windows and the current bound."""
        return self.config.metric_config(self.upper_bound)

    def sensor(self, now_ms: int) -> Sensor:
        """The only sensor; created when it is first needed, or needed again after it expired."""
        sensor = self.metrics.find(self.quota_type.value)
        if sensor is None:
            sensor = self.metrics.sensor(self.quota_type.value, now_ms, expiry_ms=SENSOR_EXPIRY_MS)
            rate = SimpleRate(WindowedSum(self.metric_config()))
            self.metrics.add(sensor, MetricName("byte-rate", self.quota_type.value), rate, now_ms)
        return sensor

    def expire(self, now_ms: int) -> int:
        """Remove the sensor if it was idle for an hour. Call this every 30 s."""
        return self.metrics.expire(now_ms)

    def measured(self, now_ms: int) -> Iterator[MeasuredMetric]:
        """The rate, if it is being recorded."""
        yield from self.metrics.measured(now_ms)


def throttled_partitions(text: str, broker_id: int) -> frozenset[int] | None:
    """The partitions of a broker in ``leader.`` or ``follower.replication.throttled.replicas``.

    Args:
        text: ``*``, or ``partition:broker`` pairs separated by commas.
        broker_id: The broker.

    Returns:
        The partitions; None for all.

    Raises:
        ValueError: The text is neither.
    """
    text = text.strip()
    if text in (ALL_REPLICAS, ""):
        return None if text else frozenset()
    pairs = [pair.strip().split(":") for pair in text.split(",") if pair.strip()]
    if any(len(pair) != 2 or not all(part.isdigit() for part in pair) for pair in pairs):
        raise ValueError(f"expected * or partition:broker pairs, have {text}")
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)
