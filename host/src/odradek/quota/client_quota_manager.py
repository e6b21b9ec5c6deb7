"""Produce and fetch bandwidth by user and client id; after kafka.server.ClientQuotaManager.

The manager computes how long a channel must not be read and keeps its metrics; the owner of the channel mutes
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from odradek.metrics.avg import Avg
from odradek.metrics.rate import Rate
from odradek.metrics.registry import MeasuredMetric, Metrics
from odradek.metrics.sensor import MetricName, QuotaViolation, Sensor
from odradek.metrics.windowed_sum import WindowedSum
from odradek.plugin.client_quota import ClientQuotaEntity, ClientQuotaType
from odradek.plugin.protocols import ClientQuotaCallback
from odradek.quota.quota_config import SENSOR_EXPIRY_MS, UNBOUNDED, UNLIMITED, QuotaConfig
from odradek.quota.quota_entity import sanitize
from odradek.quota.quota_levels import QuotaLevels
from odradek.quota.throttle_time import throttle_time_ms
from odradek.quota.throttled_channels import ThrottledChannel, ThrottledChannels
from odradek.waiting.clock import Clock, Timer

MAX_RESOLVED = 10_000
"""The most clients whose sensors are cached. A full cache is cleared as a whole, and clearing fifty thousand
entries would take 10 ms."""
MAX_RESOLVED_CHARS = 256
"""Clients with longer names are not cached."""


class ClientSensors(NamedTuple):
    """The sensors of one budget."""

    quota: Sensor
    throttle: Sensor


class ClientQuotaManager:
    """The quotas of one type: what each client has used, and how long it is throttled.

    Every request checks ``is_enabled`` first; nothing is measured until a quota is set. Changing a quota
    never resets the usage. A sensor picks up a changed limit when it is next used, so the cost of a change
    does not depend on the number of clients.
    """

    rate_metric = "byte-rate"
    """Name of the rate metric."""

    def __init__(
        self,
        quota_type: ClientQuotaType,
        config: QuotaConfig,
        clock: Clock,
        callback: ClientQuotaCallback | None = None,
        timer: Timer | None = None,
    ) -> None:
        self.quota_type = quota_type
        self.config = config
        self.clock = clock
        self.callback = callback
        self.is_enabled = callback is not None
        self.levels = QuotaLevels()
        self.metrics = Metrics()
        self.channels = ThrottledChannels(timer)
        self.resolved: dict[tuple[str, str | None], ClientSensors] = {}
        self.generation = 0

    # Requests

    def record_and_throttle_ms(self, user: str, client_id: str | None, value: float, now_ms: int) -> int:
        """Record a value and return the milliseconds to throttle for, 0 for none. A value that violates the
        quota is recorded too.

        Args:
            user: Name of the principal, without its type.
            client_id: From the request header; None counts as "".
            value: Bytes.
            now_ms: The same for all values that one request records.
        """
        if not self.is_enabled:
            return 0
        try:
            self.sensors(user, client_id, now_ms).quota.record(value, now_ms)
        except QuotaViolation as violation:
            return self.throttle_time_ms(violation, now_ms)
        return 0

    def record_without_throttle(self, user: str, client_id: str | None, value: float, now_ms: int) -> None:
        """Record a value without throttling for it now."""
        if self.is_enabled:
            self.sensors(user, client_id, now_ms).quota.record(value, now_ms, check_quotas=False)

    def unrecord(self, user: str, client_id: str | None, value: float, now_ms: int) -> None:
        """Take back a recorded value, for a response that is not sent after all."""
        self.record_without_throttle(user, client_id, -value, now_ms)

    def max_value_in_quota_window(self, user: str, client_id: str | None) -> float:
        """The bytes that a client may use at once after a pause; a fetch never reads more. Without a quota
        Double.MAX_VALUE, so no bound in practice.
        """
        limit = self.limit_or_none(user, client_id) if self.is_enabled else None
        if limit is None:
            return UNBOUNDED
        return limit * (self.config.samples - 1) * self.config.window_size_s

    def throttled(
        self,
        user: str,
        client_id: str | None,
        throttle_ms: int,
        now_ms: int | None = None,
        *,
        on_start: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> ThrottledChannel | None:
        """Record that a channel is throttled from now on.

        ``on_start`` is called at once; the timer calls ``on_end`` when the time is over. Callers that mute
        the channel themselves pass neither.
        """
        if throttle_ms <= 0:
            return None
        now_ms = self.clock.monotonic_ms() if now_ms is None else now_ms
        self.sensors(user, client_id, now_ms).throttle.record(throttle_ms, now_ms)
        return self.channels.throttle(throttle_ms, now_ms, on_start, on_end)

    # Operators

    def update_quota(self, entity: ClientQuotaEntity, value: float | None) -> None:
        """Set or remove (None) the quota of an entity: a user, a client id or both, defaults included."""
        if self.callback is None:
            self.levels.update(entity, value)
            self.is_enabled = bool(self.levels.enabled)
        elif value is None:
            self.callback.remove_quota(self.quota_type, entity)
        else:
            self.callback.update_quota(self.quota_type, entity, value)
        self.reset_limits()

    def reset_limits(self) -> None:
        """Make every client look up its limit and tags again."""
        self.generation += 1
        self.resolved.clear()

    # Limits and budgets

    def limit(self, user: str, client_id: str | None) -> float:
        """The quota that applies to a client; `UNLIMITED` (Long.MAX_VALUE) if there is none."""
        limit = self.limit_or_none(user, client_id)
        return UNLIMITED if limit is None else limit

    def limit_or_none(self, user: str, client_id: str | None) -> float | None:
        """The quota that applies to a client, or None."""
        if self.callback is None:
            return self.levels.limit(self.levels.tags(sanitize(user), client_id or ""))
        return self.callback.quota_limit(self.quota_type, self.tags(user, client_id))

    def tags(self, user: str, client_id: str | None) -> Mapping[str, str]:
        """The metric tags of a client. Clients with the same tags share one budget."""
        if self.callback is not None:
            return self.callback.quota_metric_tags(self.quota_type, user, client_id or "")
        user_tag, client_tag = self.levels.tags(sanitize(user), client_id or "")
        return {"user": user_tag, "client-id": client_tag}

    def limit_of_tags(self, tags: Mapping[str, str]) -> float:
        """The quota of the clients with these tags."""
        if self.callback is not None:
            limit = self.callback.quota_limit(self.quota_type, tags)
        else:
            limit = self.levels.limit((tags["user"], tags["client-id"]))
        return UNLIMITED if limit is None else limit

    def sensors(self, user: str, client_id: str | None, now_ms: int) -> ClientSensors:
        """The sensors of a client; created if they do not exist."""
        sensors = self.resolved.get((user, client_id))
        if sensors is not None and not sensors.quota.removed and not sensors.throttle.removed:
            return sensors
        tags = self.tags(user, client_id)
        sensors = self.sensors_of_tags(tags, now_ms)
        if self.callback is None:
            if len(self.resolved) >= MAX_RESOLVED:
                self.resolved.clear()
            if len(user) + len(client_id or "") <= MAX_RESOLVED_CHARS:
                self.resolved[user, client_id] = sensors
        elif self.callback.quota_reset_required(self.quota_type):
            self.reset_limits()
            self.take_limit(sensors.quota, tags)
        return sensors

    def sensors_of_tags(self, tags: Mapping[str, str], now_ms: int) -> ClientSensors:
        """The two sensors for these tags, with the current limit."""
        suffix = ":".join(tags.values())
        quota = self.metrics.find(f"{self.quota_type.value}-{suffix}")
        if quota is None:
            quota = self.new_sensor(f"{self.quota_type.value}-{suffix}", now_ms)
            self.add_quota_metrics(quota, tags, now_ms)
            quota.generation = self.generation
        elif quota.generation != self.generation:
            self.take_limit(quota, tags)
        throttle = self.metrics.find(f"{self.quota_type.value}ThrottleTime-{suffix}")
        if throttle is None:
            throttle = self.new_sensor(f"{self.quota_type.value}ThrottleTime-{suffix}", now_ms)
            self.metrics.add(throttle, self.metric_name("throttle-time", tags), Avg(), now_ms)
        return ClientSensors(quota, throttle)

    def new_sensor(self, name: str, now_ms: int) -> Sensor:
        """Create a sensor that expires an hour after its last record."""
        return self.metrics.sensor(name, now_ms, expiry_ms=SENSOR_EXPIRY_MS)

    def metric_name(self, name: str, tags: Mapping[str, str]) -> MetricName:
        """The name of a metric in this manager's group."""
        return MetricName.of(name, self.quota_type.value, tags)

    def add_quota_metrics(self, sensor: Sensor, tags: Mapping[str, str], now_ms: int) -> None:
        """Add the rate and its bound to a new sensor."""
        rate = Rate(WindowedSum(self.config.metric_config(self.limit_of_tags(tags))))
        self.metrics.add(sensor, self.metric_name(self.rate_metric, tags), rate, now_ms)

    def take_limit(self, sensor: Sensor, tags: Mapping[str, str]) -> None:
        """Give a sensor the current limit; its recorded values stay."""
        limit = self.limit_of_tags(tags)
        for metric in sensor.metrics:
            quota = metric.config.quota
            if quota is not None and quota.bound != limit:
                metric.config = self.config.metric_config(limit)
        sensor.generation = self.generation

    def throttle_time_ms(self, violation: QuotaViolation, now_ms: int) -> int:
        """Milliseconds to throttle for a violation."""
        return throttle_time_ms(violation, now_ms)

    # Upkeep and metrics

    def expire(self, now_ms: int) -> int:
        """Remove sensors that were idle for an hour and return how many. Call this every 30 s."""
        return self.metrics.expire(now_ms)

    def queue_size(self, now_ms: int) -> int:
        """The number of channels that are throttled now."""
        return self.channels.size(now_ms)

    def measured(self, now_ms: int) -> Iterator[MeasuredMetric]:
        """All metrics, under Kafka's names."""
        queue = MetricName("queue-size", self.quota_type.value)
        yield MeasuredMetric(queue, self.queue_size(now_ms))
        yield from self.metrics.measured(now_ms)
