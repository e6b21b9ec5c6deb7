from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from odradek.plugin.config import ConfigError
from odradek.quota.connection_limits import ConnectionLimits, connection_setting
from odradek.quota.connection_quotas import Arrival, ConnectionQuotas, ConnectionThrottled
from odradek.quota.descriptors import Descriptors
from odradek.testing.clock import MockClock

PLAINTEXT, INTERNAL = "PLAINTEXT", "PLAINTEXT_INTERNAL"
OVERRIDES = "max.connections.per.ip.overrides"
ADDRESS = "10.0.0.1"


class Names:
    """A host name lookup that the test completes."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Callable[[Sequence[str]], None]]] = []

    def __call__(self, host: str, found: Callable[[Sequence[str]], None]) -> None:
        self.asked.append((host, found))

    def answer(self, *addresses: str) -> None:
        for _, found in self.asked:
            found(addresses)
        self.asked.clear()


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def quotas(clock: MockClock, names: Names) -> ConnectionQuotas:
    limits = ConnectionLimits(max_connections=100)
    quotas = ConnectionQuotas(clock, clock.timer, configured=limits, lookup=names)
    quotas.add_listener(PLAINTEXT)
    quotas.add_listener(INTERNAL)
    return quotas


def enter(quotas: ConnectionQuotas, listener: str = INTERNAL, address: str = ADDRESS) -> None:
    quotas.enter(quotas.arrive(listener, address))


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({"max.connections": "-1"}, "max.connections"),
        ({"max.connections": "many"}, "max.connections"),
        ({"max.connections": "2147483648"}, "max.connections"),
        ({"max.connections": "1" * 5_000}, "max.connections"),
        ({"max.connections": "1.5"}, "max.connections"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip"),
        ({"max.connection.creation.rate": ""}, "max.connection.creation.rate"),
        ({"listener.name.a.max.connections": "0"}, "listener.name.a.max.connections"),
        ({"listener.name.a.max.connections.per.ip": "5"}, "listener.name.a.max.connections.per.ip"),
        ({OVERRIDES: "127.0.0.1"}, OVERRIDES),
        ({OVERRIDES: ":5"}, OVERRIDES),
        ({OVERRIDES: "no host:5"}, OVERRIDES),
        ({OVERRIDES: "127.0.0.1:-5"}, OVERRIDES),
        ({OVERRIDES: "127.0.0.1:"}, OVERRIDES),
        ({"num.partitions": "1"}, "num.partitions"),
    ],
)
def test_a_wrong_limit_is_refused_with_its_key(properties: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as error:
        ConnectionLimits().changed(properties)

    assert error.value.path == key


def test_limits_are_parsed_from_strings() -> None:
    texts = {"max.connections.per.ip": "0", OVERRIDES: "10.0.0.1:7, ::1:8,a.example.org:9"}

    limits = ConnectionLimits().changed(texts)

    assert limits.max_connections_per_ip == 0
    assert limits.overrides == {"10.0.0.1": 7, "::1": 8, "a.example.org": 9}


def test_a_listener_without_a_limit_has_that_of_the_broker() -> None:
    texts = {"max.connections": "5", "listener.name.plaintext_internal.max.connections": "3"}

    limits = ConnectionLimits().changed(texts)

    assert limits.listener_connections(PLAINTEXT) == 5
    assert limits.listener_connections(INTERNAL) == 3


def test_only_keys_of_connection_limits_are_recognized() -> None:
    keys = [
        "max.connections",
        OVERRIDES,
        "listener.name.a.max.connections",
        "listener.name.a.sasl",
        "log.dirs",
    ]

    found = [connection_setting(key) for key in keys]

    assert [setting and setting.name for setting in found] == [*keys[:3], None, None]


def test_removing_a_limit_restores_the_configured_one(quotas: ConnectionQuotas) -> None:
    quotas.reconfigure("max.connections", "5")
    changed = quotas.limits.max_connections
    quotas.reconfigure("max.connections", None)

    assert changed == 5
    assert quotas.limits.max_connections == 100


@pytest.mark.parametrize(
    ("key", "value", "listener"),
    [("max.connections", "-1", None), ("max.connections", "0", INTERNAL), ("log.dirs", "x", None)],
)
def test_a_refused_change_changes_nothing(
    quotas: ConnectionQuotas, key: str, value: str, listener: str | None
) -> None:
    before = quotas.limits

    with pytest.raises(ConfigError):
        quotas.reconfigure(key, value, listener)

    assert quotas.limits is before
    assert quotas.dynamic == {}


def test_a_listener_limit_can_be_set_by_its_whole_key(quotas: ConnectionQuotas) -> None:
    quotas.reconfigure("listener.name.plaintext_internal.max.connections", "3")
    quotas.reconfigure("max.connections", "4", PLAINTEXT)

    assert quotas.listeners[INTERNAL].max_connections == 3
    assert quotas.listeners[PLAINTEXT].max_connections == 4


def test_a_higher_limit_admits_waiting_connections(quotas: ConnectionQuotas) -> None:
    quotas.reconfigure("max.connections", "1", INTERNAL)
    enter(quotas)
    entered: list[str] = []
    quotas.wait(quotas.arrive(INTERNAL, ADDRESS), lambda: entered.append("one"))

    quotas.reconfigure("max.connections", "2", INTERNAL)

    assert entered == ["one"]


@pytest.mark.parametrize("jump_ms", [-3_600_000, 3_600_000], ids=["back", "forward"])
def test_a_wait_keeps_its_length_when_the_clock_is_set(
    quotas: ConnectionQuotas, clock: MockClock, jump_ms: int
) -> None:
    quotas.reconfigure("max.connection.creation.rate", "1", INTERNAL)
    arrivals = [quotas.arrive(INTERNAL, ADDRESS) for _ in range(12)]
    entered: list[str] = []
    clock.jump(jump_ms)
    quotas.wait(arrivals[-1], lambda: entered.append("one"))

    clock.advance(999)
    early = list(entered)
    clock.advance(1)

    assert (early, entered) == ([], ["one"])


def test_a_higher_rate_does_not_shorten_a_wait(quotas: ConnectionQuotas, clock: MockClock) -> None:
    quotas.reconfigure("max.connection.creation.rate", "1", INTERNAL)
    arrivals = [quotas.arrive(INTERNAL, ADDRESS) for _ in range(12)]
    entered: list[str] = []
    quotas.wait(arrivals[-1], lambda: entered.append("one"))

    quotas.reconfigure("max.connection.creation.rate", "1000", INTERNAL)
    clock.advance(999)
    early = list(entered)
    clock.advance(1)

    assert early == []
    assert entered == ["one"]


def test_waiting_connections_are_admitted_in_the_order_of_arrival(quotas: ConnectionQuotas) -> None:
    quotas.reconfigure("max.connections", "1")
    quotas.reconfigure("max.connections", "9", PLAINTEXT)
    quotas.add_listener("PLAINTEXT_OTHER")
    enter(quotas)
    entered: list[str] = []

    def let_in(arrival: Arrival) -> None:
        entered.append(arrival.listener.name)
        quotas.enter(arrival)

    for name in (INTERNAL, "PLAINTEXT_OTHER"):
        arrival = quotas.arrive(name, ADDRESS)
        quotas.wait(arrival, partial(let_in, arrival))

    quotas.dec(INTERNAL, ADDRESS)

    assert entered == [INTERNAL]


def test_an_abandoned_connection_is_never_admitted(quotas: ConnectionQuotas, clock: MockClock) -> None:
    quotas.reconfigure("max.connection.creation.rate", "1", INTERNAL)
    arrival = [quotas.arrive(INTERNAL, ADDRESS) for _ in range(12)][-1]
    entered: list[str] = []
    quotas.wait(arrival, lambda: entered.append("one"))

    quotas.abandon(arrival)
    clock.advance(60_000)

    assert entered == []
    assert len(clock.timer) == 0


def test_a_lower_limit_closes_connections_at_once(quotas: ConnectionQuotas) -> None:
    closed: list[int] = []
    quotas.over_limit = lambda quotas: closed.append(quotas.excess)
    for _ in range(3):
        enter(quotas)

    quotas.reconfigure("max.connections", "1")

    assert closed == [2]


def test_connections_of_a_removed_listener_stay_counted(quotas: ConnectionQuotas) -> None:
    enter(quotas)

    quotas.remove_listener(INTERNAL)
    total = quotas.total
    quotas.dec(INTERNAL, ADDRESS)

    assert (total, quotas.total, quotas.counts) == (1, 0, {})
    assert not quotas.is_protected(PLAINTEXT)


def test_a_host_name_stands_for_its_addresses(quotas: ConnectionQuotas, names: Names) -> None:
    quotas.update_ip_rate("localhost", 0)
    names.answer("127.0.0.1", "::1")

    for address in ("127.0.0.1", "0:0:0:0:0:0:0:1"):
        with pytest.raises(ConnectionThrottled):
            enter(quotas, address=address)
    enter(quotas, address=ADDRESS)


def test_a_rate_removed_before_its_host_resolves_never_applies(
    quotas: ConnectionQuotas, names: Names
) -> None:
    quotas.update_ip_rate("localhost", 0)
    quotas.update_ip_rate("localhost", None)
    names.answer("127.0.0.1")

    enter(quotas, address="127.0.0.1")

    assert quotas.counts == {"127.0.0.1": 1}


def test_an_override_applies_once_its_host_resolves(quotas: ConnectionQuotas, names: Names) -> None:
    quotas.reconfigure(OVERRIDES, "localhost:7,10.0.0.1:8")
    before = dict(quotas.per_ip_overrides)
    names.answer("127.0.0.1")

    assert before == {ADDRESS: 8}
    assert quotas.per_ip_overrides == {"127.0.0.1": 7, ADDRESS: 8}


def test_a_host_without_addresses_is_logged(
    quotas: ConnectionQuotas, names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    quotas.update_ip_rate("no.invalid", 5)

    with caplog.at_level(logging.WARNING):
        names.answer()

    assert [record.getMessage() for record in caplog.records] == [
        "a connection limit has no effect: its host cannot be resolved"
    ]


def test_the_zone_and_spelling_of_an_address_do_not_matter(quotas: ConnectionQuotas) -> None:
    quotas.update_ip_rate("fe80::1", 0)

    with pytest.raises(ConnectionThrottled):
        enter(quotas, address="fe80:0:0:0:0:0:0:1%eth0")


def test_addresses_without_connections_for_an_hour_are_forgotten(
    quotas: ConnectionQuotas, clock: MockClock
) -> None:
    quotas.update_ip_rate(None, 5)
    enter(quotas)
    clock.advance(3_600_001)

    forgotten = quotas.expire(clock.monotonic_ms())

    assert forgotten == 1
    names = [(metric.name.name, dict(metric.name.tags)) for metric in quotas.measured(clock.monotonic_ms())]
    assert ("connection-accept-rate", {"ip": ADDRESS}) not in names
    assert ("connection-accept-rate", {"listener": INTERNAL}) in names
    assert ("broker-connection-accept-rate", {}) in names


def descriptors_for(clock: MockClock, connections: int) -> ConnectionQuotas:
    """Quotas without limits in a process with few descriptors; `PLAINTEXT` is protected."""
    quotas = ConnectionQuotas(clock, clock.timer, descriptors=Descriptors(connections=connections))
    quotas.add_listener(PLAINTEXT)
    quotas.add_listener(INTERNAL)
    return quotas


def test_without_a_limit_the_descriptors_are_the_limit(clock: MockClock) -> None:
    quotas = descriptors_for(clock, 2)
    before = quotas.has_slot(quotas.listeners[INTERNAL])
    for _ in range(2):
        enter(quotas)

    assert before
    assert not quotas.has_slot(quotas.listeners[INTERNAL])
    assert quotas.most == 2


@pytest.mark.parametrize(("limit", "most"), [("5", 2), ("2147483647", 2), ("1", 1)])
def test_no_limit_allows_more_than_the_descriptors(clock: MockClock, limit: str, most: int) -> None:
    quotas = descriptors_for(clock, 2)

    quotas.reconfigure("max.connections", limit)

    assert quotas.most == most


def test_a_protected_listener_takes_the_place_of_others_but_no_further_descriptors(clock: MockClock) -> None:
    quotas = descriptors_for(clock, 2)
    excesses: list[int] = []
    quotas.over_limit = lambda quotas: excesses.append(quotas.excess)
    enter(quotas, INTERNAL)
    enter(quotas, PLAINTEXT)
    allowed = quotas.has_slot(quotas.listeners[PLAINTEXT])
    enter(quotas, PLAINTEXT)
    quotas.displace()

    quotas.dec(INTERNAL, ADDRESS)

    assert allowed
    assert excesses == [1]
    assert not quotas.has_slot(quotas.listeners[PLAINTEXT])


class Waiting:
    """The socket of a connection that waits."""


def test_a_connection_that_waited_is_freed_at_once(quotas: ConnectionQuotas) -> None:
    quotas.reconfigure("max.connections", "1", INTERNAL)
    enter(quotas)
    arrival, connection = quotas.arrive(INTERNAL, ADDRESS), Waiting()
    alive = weakref.ref(connection)
    quotas.wait(arrival, lambda kept=(arrival, connection): None)  # type: ignore[misc]

    gc.disable()
    try:
        quotas.reconfigure("max.connections", "2", INTERNAL)
        del arrival, connection
        freed = alive() is None
    finally:
        gc.enable()

    assert freed
