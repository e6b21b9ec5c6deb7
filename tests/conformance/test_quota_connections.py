"""Limits on the number and rate of connections, after Kafka's ConnectionQuotasTest, on a mock clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest

from odradek.plugin.config import ConfigError
from odradek.quota.connection_limits import MAX_CONNECTION_CREATION_RATE as RATE
from odradek.quota.connection_limits import MAX_CONNECTIONS as MOST
from odradek.quota.connection_limits import MAX_CONNECTIONS_PER_IP as MOST_PER_IP
from odradek.quota.connection_limits import ConnectionLimits
from odradek.quota.connection_quotas import (
    Arrival,
    ConnectionQuotas,
    ConnectionThrottled,
    TooManyConnections,
)
from odradek.quota.connection_rates import UNLIMITED_RATE
from odradek.quota.quota_config import QuotaConfig
from odradek.testing.clock import MockClock
from odradek.wire.limits import INT32_MAX

EXTERNAL, ADMIN, REPLICATION = "EXTERNAL", "ADMIN", "REPLICATION"
ADDRESSES = {EXTERNAL: "192.168.1.1", ADMIN: "192.168.1.2", REPLICATION: "192.168.1.3"}
OTHER = "192.168.1.4"


class ThreeListeners:
    """Three listeners, the last of them the inter-broker listener; two windows of one second."""

    def __init__(
        self, broker: Mapping[str, int] | None = None, listener: Mapping[str, int] | None = None
    ) -> None:
        self.clock = MockClock()
        each = {MOST: INT32_MAX, RATE: INT32_MAX, **(listener or {})}
        own = {f"listener.name.{name.lower()}.{key}": each[key] for name in ADDRESSES for key in each}
        properties = {key: str(value) for key, value in {**(broker or {}), **own}.items()}
        limits = ConnectionLimits().changed(properties)
        self.quotas = ConnectionQuotas(
            self.clock, self.clock.timer, QuotaConfig(samples=2), limits, REPLICATION
        )
        for name in ADDRESSES:
            self.quotas.add_listener(name)

    def inc(self, listener: str, address: str | None = None) -> Entry:
        """Start one connection, which may have to wait."""
        return Entry(self.quotas, listener, address or ADDRESSES[listener])

    def dec(self, listener: str) -> None:
        self.quotas.dec(listener, ADDRESSES[listener])

    def count(self, listener: str) -> int:
        return self.quotas.counts.get(ADDRESSES[listener], 0)

    def run(self, *loads: Load) -> None:
        """Run several loads side by side until the last one has made all its connections."""
        for load in loads:
            load.attempt()
        for _ in range(60_000):
            if all(load.done for load in loads):
                return
            self.clock.advance(1)
        raise AssertionError("connections wait for ever")

    def every_listener(self, count: int, interval_ms: int) -> list[Load]:
        """Run the same load on every listener at once."""
        loads = [Load(self, name, count, interval_ms) for name in ADDRESSES]
        self.run(*loads)
        return loads

    def blocked(self, listener: str) -> float:
        """The share of time that an acceptor was blocked."""
        rates = self.quotas.rates.listeners[listener]
        return rates.blocked.measure(self.clock.monotonic_ms())

    def measured(self, name: str, **tags: str) -> float:
        """The value of a metric, by name and tags."""
        found = {
            (metric.name.name, metric.name.tags): metric.value
            for metric in self.quotas.measured(self.clock.monotonic_ms())
        }
        return found[name, tuple(tags.items())]

    def accept_rate(self, listener: str) -> float:
        return self.measured("connection-accept-rate", listener=listener)

    def throttle_ms(self, listener: str) -> float:
        return self.measured("connection-accept-throttle-time", listener=listener)

    def ip_throttle_ms(self, listener: str) -> float:
        return self.measured("ip-connection-accept-throttle-time", listener=listener)


class Entry:
    """The outcome of one connection attempt."""

    def __init__(self, quotas: ConnectionQuotas, listener: str, address: str) -> None:
        self.quotas = quotas
        self.entered = False
        self.on_entry: Callable[[], None] | None = None
        self.error: TooManyConnections | ConnectionThrottled | None = None
        arrival = quotas.arrive(listener, address)
        if quotas.may_enter(arrival):
            self.enter(arrival)
        else:
            quotas.wait(arrival, lambda: self.enter(arrival))

    def enter(self, arrival: Arrival) -> None:
        try:
            self.quotas.enter(arrival)
        except (TooManyConnections, ConnectionThrottled) as error:
            self.error = error
        self.entered = True
        if self.on_entry is not None:
            self.on_entry()


class Load:
    """Connections on one listener, one after the other, each at its time or as soon as the previous one has
    entered.
    """

    def __init__(
        self,
        listeners: ThreeListeners,
        listener: str,
        count: int,
        interval_ms: int,
        address: str | None = None,
    ) -> None:
        self.listeners, self.listener, self.address = listeners, listener, address
        self.left, self.interval_ms = count, interval_ms
        self.next_ms = self.start_ms = listeners.clock.monotonic_ms()
        self.accepted = self.turned_away = 0
        self.done = False
        self.end_ms = 0

    @property
    def rate(self) -> float:
        """Accepted connections per second."""
        return self.accepted / (self.end_ms - self.start_ms) * 1000

    def attempt(self) -> None:
        if self.left == 0:
            self.done = True
            self.end_ms = self.listeners.clock.monotonic_ms()
            return
        self.left -= 1
        self.next_ms += self.interval_ms
        entry = self.listeners.inc(self.listener, self.address)
        if entry.entered:
            self.go_on(entry)
        else:
            entry.on_entry = lambda: self.go_on(entry)

    def go_on(self, entry: Entry) -> None:
        self.turned_away += entry.error is not None
        self.accepted += entry.error is None
        self.listeners.clock.timer.schedule(
            max(self.next_ms, self.listeners.clock.monotonic_ms()), self.attempt
        )


def no_listener_was_blocked(listeners: ThreeListeners) -> bool:
    return not any(listeners.blocked(name) for name in ADDRESSES)


def test_an_unknown_listener_is_refused() -> None:
    clock = MockClock()
    quotas = ConnectionQuotas(clock, clock.timer)

    with pytest.raises(KeyError):
        quotas.arrive(EXTERNAL, ADDRESSES[EXTERNAL])


def test_closing_a_connection_of_an_unknown_address_fails() -> None:
    listeners = ThreeListeners()

    with pytest.raises(ValueError, match="has no connection"):
        listeners.dec(EXTERNAL)


def test_without_limits_every_connection_is_accepted() -> None:
    listeners = ThreeListeners()

    listeners.every_listener(10_000, 0)

    assert [listeners.count(name) for name in ADDRESSES] == [10_000] * 3
    assert all(listeners.accept_rate(name) > 0 for name in ADDRESSES)
    assert no_listener_was_blocked(listeners)
    for name in ADDRESSES:
        listeners.dec(name)
    assert [listeners.count(name) for name in ADDRESSES] == [9_999] * 3


def test_connections_per_address_are_limited() -> None:
    listeners = ThreeListeners({MOST_PER_IP: 17})

    first = [listeners.inc(EXTERNAL).error for _ in range(17)]
    beyond = [listeners.inc(EXTERNAL).error for _ in range(2)]
    counted = listeners.count(EXTERNAL)
    other = [listeners.inc(EXTERNAL, OTHER).error for _ in range(17)]
    for _ in range(4):
        listeners.dec(EXTERNAL)
    later = [listeners.inc(EXTERNAL).error for _ in range(2)]

    assert [*first, *other, *later] == [None] * 36
    assert all(isinstance(error, TooManyConnections) and error.limit == 17 for error in beyond)
    assert counted == 19
    assert listeners.count(EXTERNAL) == 17


def test_connections_per_broker_are_limited() -> None:
    listeners = ThreeListeners({MOST: 800})
    listeners.run(Load(listeners, EXTERNAL, 800, 0))
    before = listeners.blocked(EXTERNAL), listeners.quotas.excess

    waiting = listeners.inc(EXTERNAL)
    listeners.clock.advance(101)
    waited = not waiting.entered
    listeners.dec(EXTERNAL)

    assert before == (0, 0)
    assert waited
    assert waiting.entered
    assert listeners.count(EXTERNAL) == 800
    assert listeners.blocked(EXTERNAL) > 0


def test_the_inter_broker_listener_may_exceed_the_limit_of_the_broker() -> None:
    listeners = ThreeListeners({MOST: 800})
    listeners.run(Load(listeners, EXTERNAL, 800, 0))

    first = listeners.inc(REPLICATION).entered
    exceeded = listeners.quotas.excess, listeners.quotas.is_protected(EXTERNAL)
    waiting = listeners.inc(ADMIN)
    second = listeners.inc(REPLICATION).entered
    released = []
    for _ in range(3):
        listeners.dec(EXTERNAL)
        listeners.clock.advance(100)
        released.append(waiting.entered)

    assert first
    assert second
    assert exceeded == (1, False)
    assert released == [False, False, True]


def test_connections_per_listener_are_limited() -> None:
    listeners = ThreeListeners({MOST: 800}, {MOST: 200})
    listeners.every_listener(200, 0)

    waiting = {name: listeners.inc(name) for name in ADDRESSES}
    listeners.clock.advance(100)
    before = [entry.entered for entry in waiting.values()]
    for name in ADDRESSES:
        listeners.dec(name)

    assert before == [False] * 3
    assert all(entry.entered for entry in waiting.values())
    assert [listeners.count(name) for name in ADDRESSES] == [200] * 3


def test_below_the_broker_rate_no_listener_waits() -> None:
    listeners = ThreeListeners({RATE: 125})

    listeners.every_listener(200, 25)

    assert no_listener_was_blocked(listeners)


def test_above_the_broker_rate_all_but_the_inter_broker_listener_wait() -> None:
    listeners = ThreeListeners({RATE: 90})

    listeners.every_listener(400, 10)

    assert [listeners.count(name) for name in ADDRESSES] == [400] * 3
    assert listeners.blocked(EXTERNAL) > 0
    assert listeners.blocked(ADMIN) > 0
    assert listeners.blocked(REPLICATION) == 0


def test_below_its_rate_no_listener_waits() -> None:
    listeners = ThreeListeners({RATE: 125}, {RATE: 50})

    listeners.every_listener(200, 25)

    assert no_listener_was_blocked(listeners)


def test_above_its_rate_every_listener_waits() -> None:
    listeners = ThreeListeners({RATE: 125}, {RATE: 30})

    loads = listeners.every_listener(600, 25)

    assert [load.rate for load in loads] == pytest.approx([30] * 3, abs=7)
    assert all(listeners.blocked(name) > 0 and listeners.throttle_ms(name) > 0 for name in ADDRESSES)


def test_below_its_rate_no_address_is_refused() -> None:
    listeners = ThreeListeners()
    listeners.quotas.update_ip_rate(ADDRESSES[EXTERNAL], 30)

    limited = Load(listeners, EXTERNAL, 200, 40)
    listeners.run(limited)
    free = Load(listeners, ADMIN, 200, 20)
    listeners.run(free)

    assert limited.rate == 25
    assert free.rate == 50
    assert limited.turned_away == free.turned_away == 0
    assert no_listener_was_blocked(listeners)
    assert math.isnan(listeners.ip_throttle_ms(EXTERNAL))


def test_above_its_rate_connections_of_an_address_are_refused() -> None:
    listeners = ThreeListeners()
    listeners.quotas.update_ip_rate(ADDRESSES[EXTERNAL], 20)

    first = Load(listeners, EXTERNAL, 80, 25)
    listeners.run(first)
    listeners.quotas.update_ip_rate(None, 20)
    second = Load(listeners, ADMIN, 80, 25)
    listeners.run(second)

    assert [first.rate, second.rate] == pytest.approx([20, 20], abs=1)
    assert listeners.ip_throttle_ms(EXTERNAL) > 0
    assert listeners.ip_throttle_ms(ADMIN) > 0
    assert math.isnan(listeners.ip_throttle_ms(REPLICATION))
    assert no_listener_was_blocked(listeners)


def test_a_waiting_listener_still_enforces_rates_of_addresses() -> None:
    listeners = ThreeListeners(listener={RATE: 35})
    listeners.quotas.update_ip_rate(None, 25)

    loads = [Load(listeners, EXTERNAL, 35, 0, address) for address in (ADDRESSES[EXTERNAL], OTHER)]
    listeners.run(*loads)

    assert listeners.blocked(EXTERNAL) > 0
    assert sum(load.turned_away > 0 for load in loads) < 2


@pytest.mark.parametrize("listener", [EXTERNAL, REPLICATION])
def test_a_refused_connection_is_not_counted(listener: str) -> None:
    listeners = ThreeListeners()
    listeners.quotas.update_ip_rate(ADDRESSES[listener], 0)

    entry = listeners.inc(listener)

    assert isinstance(entry.error, ConnectionThrottled)
    assert listeners.measured("connection-accept-rate", ip=ADDRESSES[listener]) == 0
    assert listeners.accept_rate(listener) == 0
    assert listeners.measured("broker-connection-accept-rate") == 0
    assert listeners.count(listener) == 0


def test_the_rate_of_a_listener_cannot_be_zero() -> None:
    listeners = ThreeListeners()

    with pytest.raises(ConfigError, match=r"listener\.name\.external\.max\.connection\.creation\.rate"):
        listeners.quotas.reconfigure(RATE, "0", EXTERNAL)


def test_the_rate_of_a_listener_can_change_while_in_use() -> None:
    listeners = ThreeListeners()
    listeners.quotas.reconfigure(RATE, "20", EXTERNAL)
    listeners.quotas.reconfigure(RATE, None, EXTERNAL)

    listeners.run(Load(listeners, EXTERNAL, 1000, 0))
    free = listeners.blocked(EXTERNAL)
    listeners.quotas.reconfigure(RATE, "10", EXTERNAL)
    limited = Load(listeners, EXTERNAL, 200, 10)
    listeners.run(limited)

    assert free == 0
    assert listeners.blocked(EXTERNAL) > 0
    assert limited.rate == pytest.approx(10, abs=3)


def test_the_rate_of_the_broker_can_change_while_in_use() -> None:
    listeners = ThreeListeners()
    listeners.quotas.reconfigure(RATE, "50")

    load = Load(listeners, EXTERNAL, 400, 5)
    listeners.run(load)

    assert load.rate == pytest.approx(50, abs=20)
    assert listeners.blocked(EXTERNAL) > 0


def test_an_address_without_a_rate_has_the_default_rate() -> None:
    listeners, (external, admin) = ThreeListeners(), (ADDRESSES[EXTERNAL], ADDRESSES[ADMIN])
    seen = []
    for ip, rate in ((None, 50.0), (external, 30.0), (None, 20.0), (None, None), (external, None)):
        listeners.quotas.update_ip_rate(ip, rate)
        listeners.inc(EXTERNAL)
        listeners.inc(ADMIN)
        sensors = listeners.quotas.rates.metrics.sensors.values()
        quotas = [metric.config.quota for sensor in sensors for metric in sensor.metrics]
        rates = [listeners.quotas.rates.rate_of(address) for address in (external, admin)]
        seen.append((rates, [quota.bound for quota in quotas if quota]))

    assert [rates for rates, _ in seen] == [
        [50, 50],
        [30, 50],
        [30, 20],
        [30, UNLIMITED_RATE],
        [UNLIMITED_RATE, UNLIMITED_RATE],
    ]
    assert [bounds for _, bounds in seen[:3]] == [[50, 50], [30, 50], [30, 20]]


def test_the_rate_of_an_address_can_change_while_in_use() -> None:
    listeners, external = ThreeListeners(), ADDRESSES[EXTERNAL]

    def attempts(listener: str) -> int:
        """Try 40 connections at one instant; return how many the address then has."""
        for _ in range(40):
            listeners.inc(listener)
        return listeners.count(listener)

    listeners.quotas.update_ip_rate(external, 20)
    first = [listeners.inc(EXTERNAL).error for _ in range(40)]
    counts = [listeners.count(EXTERNAL)]
    listeners.quotas.update_ip_rate(external, 30)
    counts.append(attempts(EXTERNAL))
    listeners.quotas.update_ip_rate(external, None)
    counts.append(attempts(EXTERNAL))
    counts.append(attempts(ADMIN))
    listeners.quotas.update_ip_rate(None, 20)
    counts.append(attempts(ADMIN))

    assert first[:20] == [None] * 20
    assert all(isinstance(error, ConnectionThrottled) for error in first[20:])
    assert counts == [20, 30, 70, 40, 60]
    assert no_listener_was_blocked(listeners)


def test_rate_and_number_of_connections_are_both_enforced() -> None:
    listeners = ThreeListeners({RATE: 25, MOST: 350})

    load = Load(listeners, EXTERNAL, 350, 10)
    listeners.run(load)
    waiting = listeners.inc(EXTERNAL)
    listeners.clock.advance(5_000)
    waited = not waiting.entered
    listeners.dec(EXTERNAL)

    assert load.rate == pytest.approx(25, abs=8)
    assert waited
    assert waiting.entered
    assert listeners.count(EXTERNAL) == 350
