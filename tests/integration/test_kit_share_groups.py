"""The share consumer of librdkafka on a host of the kit, and what the kit shows of its group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from odradek.testing import RunningHost, VirtualClock
from support.share_members import configure_group

confluent_kafka = pytest.importorskip("confluent_kafka", minversion="2.16.1")
pytestmark = [pytest.mark.timeout(90), pytest.mark.ci]
PATIENCE_S = 30
QUICK = {"group.share.min.heartbeat.interval.ms": 100, "group.share.heartbeat.interval.ms": 100}
"""A member gets its partitions with its second heartbeat."""


@contextmanager
def consumer(host: RunningHost, **settings: Any) -> Iterator[Any]:
    """A member of group ``g`` that reads topic ``orders``."""
    config = {
        "bootstrap.servers": host.bootstrap,
        "group.id": "g",
        "enable.metrics.push": False,
        "log_level": 2,
    }
    member = confluent_kafka.ShareConsumer(config | settings)
    try:
        member.subscribe(["orders"])
        yield member
    finally:
        member.close()


def polled(member: Any, count: int) -> list[Any]:
    """So many messages."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        found += [message for message in member.poll(0.5) if message.error() is None]
    return found


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    """Ten records for group ``g``."""
    host = odradek_hosts(clock=VirtualClock(), **QUICK)
    configure_group(host.bootstrap, "g", auto_offset_reset="earliest", assignment_interval_ms="0")
    host.topics.produce("orders", *(str(number) for number in range(10)))
    return host


def test_records_are_taken_and_the_group_is_done_with_them(host: RunningHost) -> None:
    with consumer(host) as member:
        taken = polled(member, 10)
        member.commit_sync()

    assert [message.value() for message in taken] == [b"%d" % number for number in range(10)]
    assert host.groups.share("g").wait_until_done("orders", {0: 10}) == {0: 10}
    assert host.groups.share("g").in_flight("orders") == []


def test_the_kit_shows_who_holds_what_and_ends_locks(host: RunningHost) -> None:
    group = host.groups.share("g")
    with consumer(host, **{"share.acknowledgement.mode": "explicit"}) as slow:
        polled(slow, 10)
        ((_, first, last, state, deliveries, holder),) = group.in_flight("orders")
        host.clock.advance(30_000)
        with consumer(host) as other:
            again = polled(other, 10)
            other.commit_sync()

    assert (first, last, state, deliveries) == (0, 9, "acquired", 1)
    assert holder
    assert len(again) == 10
    assert group.wait_until_done("orders", {0: 10}) == {0: 10}
