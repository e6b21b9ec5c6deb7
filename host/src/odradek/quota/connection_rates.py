"""Rates of new connections: of the broker, of each listener and of each address (KIP-612).

The sensors and metrics of kafka.network.ConnectionQuotas, in the group ``socket-server-metrics``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from odradek.metrics.avg import Avg
from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.rate import Rate
from odradek.metrics.registry import MeasuredMetric, Metrics
from odradek.metrics.sensor import NEVER_MS, MetricName, QuotaViolation, Sensor, Stat
from odradek.metrics.windowed_sum import WindowedSum
from odradek.quota.quota_config import SENSOR_EXPIRY_MS, QuotaConfig
from odradek.quota.throttle_time import bounded_throttle_time_ms
from odradek.waiting.clock import Clock
from odradek.wire.limits import INT32_MAX

GROUP = "socket-server-metrics"
ACCEPT_RATE = "connection-accept-rate"
UNLIMITED_RATE = float(INT32_MAX)
"""QuotaConfig.IP_CONNECTION_RATE_DEFAULT: an address without a limit has no sensor."""


@dataclass(slots=True, eq=False)
class ListenerRates:
    """The sensors of one listener."""

    accepted: Sensor
    throttle: Sensor
    ip_throttle: Sensor
    blocked: Rate = field(default_factory=lambda: Rate(WindowedSum()))
    """Nanoseconds per second for which its acceptor waited."""


class ConnectionRates:
    """Records connections and computes how long they must wait."""

    def __init__(self, config: QuotaConfig, clock: Clock, bound: float) -> None:
        self.config = config
        self.clock = clock
        self.metrics = Metrics()
        self.broker = self.rate_sensor("", MetricName(f"broker-{ACCEPT_RATE}", GROUP), bound)
        self.listeners: dict[str, ListenerRates] = {}
        self.by_address: dict[str, float] = {}
        self.default_rate = UNLIMITED_RATE

    def rate_sensor(self, suffix: str, metric: MetricName, bound: float, expiry_ms: int = NEVER_MS) -> Sensor:
        """Create the sensor of a rate with a bound."""
        rate = Rate(WindowedSum(self.windows(bound)))
        return self.sensor(f"Connection-Accept-Rate{suffix}", metric, rate, expiry_ms)

    def sensor(self, name: str, metric: MetricName, stat: Stat, expiry_ms: int = NEVER_MS) -> Sensor:
        now_ms = self.clock.monotonic_ms()
        sensor = self.metrics.sensor(name, now_ms, expiry_ms=expiry_ms)
        self.metrics.add(sensor, metric, stat, now_ms)
        return sensor

    def add_listener(self, listener: str, bound: float) -> ListenerRates:
        """Create the sensors of a listener."""
        tags = (("listener", listener),)
        rates = self.listeners[listener] = ListenerRates(
            self.rate_sensor(f"-{listener}", MetricName(ACCEPT_RATE, GROUP, tags), bound),
            self.sensor(
                f"ConnectionRateThrottleTime-{listener}",
                MetricName("connection-accept-throttle-time", GROUP, tags),
                Avg(),
            ),
            self.sensor(
                f"ip-ConnectionRateThrottleTime-{listener}",
                MetricName("ip-connection-accept-throttle-time", GROUP, tags),
                Avg(),
            ),
        )
        return rates

    def remove_listener(self, listener: str) -> None:
        """Remove the sensors of a listener. Does nothing if it is unknown."""
        rates = self.listeners.pop(listener, None)
        if rates is not None:
            for sensor in (rates.accepted, rates.throttle, rates.ip_throttle):
                self.metrics.remove(sensor.name)

    def set_bound(self, sensor: Sensor, bound: float) -> None:
        """Change the bound of a sensor; its recorded values stay."""
        metric = sensor.metrics[0]
        quota = metric.config.quota
        if bound != (UNLIMITED_RATE if quota is None else quota.bound):
            metric.config = self.windows(bound)

    def windows(self, bound: float) -> MetricConfig:
        """The windows of a rate, without a quota to check if there is no limit, which is the common case."""
        return self.config.windows if bound == UNLIMITED_RATE else self.config.metric_config(bound)

    def throttle_ms(self, sensor: Sensor, now_ms: int) -> int:
        """Record a connection; return the milliseconds until the rate is back at its bound, at most one
        window.
        """
        try:
            sensor.record(1, now_ms)
        except QuotaViolation as violation:
            return bounded_throttle_time_ms(violation, self.config.window_size_s * 1000, now_ms)
        return 0

    def record_arrival(self, rates: ListenerRates, protected: bool, now_ms: int) -> int:
        """Record a connection for a listener and, unless the listener is protected, for the broker.

        Returns:
            The milliseconds that it must wait.
        """
        broker_ms = 0 if protected else self.throttle_ms(self.broker, now_ms)
        throttle_ms = max(broker_ms, self.throttle_ms(rates.accepted, now_ms), 0)
        if throttle_ms > 0:
            rates.throttle.record(throttle_ms, now_ms)
        return throttle_ms

    def record_address(self, rates: ListenerRates, protected: bool, address: str, now_ms: int) -> int:
        """Record a connection for an address. A refused connection counts nowhere.

        Returns:
            The milliseconds that the address must wait before its next attempt; 0 if the connection is
            accepted.
        """
        bound = self.rate_of(address)
        if bound == UNLIMITED_RATE:
            return 0
        sensor = self.address_sensor(address, bound)
        throttle_ms = self.throttle_ms(sensor, now_ms)
        if throttle_ms <= 0:
            return 0
        sensor.record(-1, now_ms, check_quotas=False)
        # The connection was recorded when it arrived. It is taken back from all three rates, so that an
        # address that keeps trying cannot use up the rates of the listener and the broker.
        if not protected:
            self.broker.record(-1, now_ms, check_quotas=False)
        rates.ip_throttle.record(throttle_ms, now_ms)
        rates.accepted.record(-1, now_ms, check_quotas=False)
        return throttle_ms

    def address_sensor(self, address: str, bound: float) -> Sensor:
        """The sensor of an address, with its current limit."""
        sensor = self.metrics.find(f"Connection-Accept-Rate-{address}")
        if sensor is None:
            metric = MetricName(ACCEPT_RATE, GROUP, (("ip", address),))
            return self.rate_sensor(f"-{address}", metric, bound, SENSOR_EXPIRY_MS)
        self.set_bound(sensor, bound)
        return sensor

    def rate_of(self, address: str) -> float:
        """The limit of an address: its own, or the default."""
        return self.by_address.get(address, self.default_rate)

    def set_address_rate(self, address: str, rate: float | None) -> None:
        """Set the limit of one address from its next connection on; None returns to the default."""
        if rate is None:
            self.by_address.pop(address, None)
        else:
            self.by_address[address] = rate

    def set_default_rate(self, rate: float | None) -> None:
        """Set the limit of all addresses without their own; None removes it."""
        self.default_rate = UNLIMITED_RATE if rate is None else rate

    def measured(self, now_ms: int) -> Iterator[MeasuredMetric]:
        """The metrics under Kafka's names."""
        yield from self.metrics.measured(now_ms)
        for listener, rates in list(self.listeners.items()):
            name = MetricName("AcceptorBlockedPercent", "Acceptor", (("listener", listener),))
            yield MeasuredMetric(name, rates.blocked.measure(now_ms) / 1e9)
