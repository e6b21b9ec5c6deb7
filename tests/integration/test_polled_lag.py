"""The right answer for each kind of group, topic and offset of a cluster that is polled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from odradek.testing import RunningHost, VirtualClock
from support.polled_lag import PolledLag

MINUTE_MS = 60_000


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    host = odradek_hosts(clock=VirtualClock(), telemetry_lag="none")
    host.topics.create("orders", partitions=2)
    return host


@pytest.fixture
def polled(host: RunningHost) -> Iterator[PolledLag]:
    polled = PolledLag(host.bootstrap, host.clock)
    yield polled
    polled.positions.brokers.close()


def fill(host: RunningHost, records: int, partition: int = 0, topic: str = "orders") -> None:
    host.topics.produce(topic, *[b"v"] * records, partition=partition)


def records(lag: object) -> int:
    return lag.standing.lag  # type: ignore[attr-defined,no-any-return]


def test_lag_in_records_and_in_seconds(host: RunningHost, polled: PolledLag) -> None:
    host.groups.commit("billing", "orders", {0: 0})
    polled.round()
    host.clock.advance(10_000)
    polled.note_ends()
    fill(host, 10)
    host.groups.commit("billing", "orders", {0: 4})
    host.clock.advance(2_000)
    polled.note_ends()
    host.clock.advance(98_000)
    polled.round()

    found = polled.at("billing", "orders")

    assert found is not None
    assert (found.offset, found.standing.lag) == (4, 6)
    assert found.time_ms == pytest.approx(100_000, abs=2_000)


def test_records_older_than_the_first_poll_have_their_own_time(host: RunningHost, polled: PolledLag) -> None:
    fill(host, 1)
    host.clock.advance(10 * MINUTE_MS)
    fill(host, 1_500)
    host.clock.advance(10 * MINUTE_MS)
    host.groups.commit("slow", "orders", {0: 0})
    host.groups.commit("less", "orders", {0: 1})
    polled.round()

    slow, less = polled.at("slow", "orders"), polled.at("less", "orders")

    assert slow is not None
    assert less is not None
    assert slow.time_ms == pytest.approx(20 * MINUTE_MS, abs=2_000)
    assert less.time_ms == pytest.approx(10 * MINUTE_MS, abs=2_000)
    assert polled.positions.left_out["age"] == 0
