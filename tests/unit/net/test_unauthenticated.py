"""Connections that have not authenticated: their number and their time, on a mock clock."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest

from odradek.net.unauthenticated import CLOSED_AT_ONCE, Unauthenticated
from odradek.testing.clock import MockClock

MAX_MS = 1_000


@dataclass(eq=False)
class Connection:
    pending: object | None = None
    aborted: bool = False
    about: dict[str, str] = field(default_factory=lambda: {"address": "10.0.0.7"})

    def abort(self) -> None:
        self.aborted = True


class Door:
    """The connections of one host."""

    def __init__(self, most: int = 1_000_000) -> None:
        self.clock = MockClock()
        self.waiting = Unauthenticated(most, MAX_MS, self.clock, self.clock.timer)
        self.came: list[Connection] = []

    def come(self, count: int, pending: object | None = None) -> list[Connection]:
        added = [Connection(pending) for _ in range(count)]
        for each in added:
            self.waiting.add(each)
        self.came += added
        return added

    @property
    def aborted(self) -> list[int]:
        return [number for number, each in enumerate(self.came) if each.aborted]


def test_one_more_than_the_limit_closes_the_oldest() -> None:
    door = Door(most=3)

    door.come(5)

    assert door.aborted == [0, 1]
    assert len(door.waiting) == 3
    assert door.waiting.closed == 2


def test_a_client_that_waits_for_the_host_is_not_the_first_to_be_closed() -> None:
    door = Door(most=3)
    door.come(2, pending="a password is being checked")

    door.come(3)

    assert door.aborted == [2, 3]


def test_if_all_wait_for_the_host_the_oldest_is_closed() -> None:
    door = Door(most=3)

    door.come(4, pending="a password is being checked")

    assert door.aborted == [0]


def test_a_connection_that_does_not_authenticate_in_time_is_closed() -> None:
    door = Door()
    door.come(2)
    door.clock.advance(MAX_MS // 2)
    door.come(1)

    door.clock.advance(MAX_MS // 2)
    first = door.aborted
    door.clock.advance(MAX_MS // 2)

    assert first == [0, 1]
    assert door.aborted == [0, 1, 2]
    assert len(door.clock.timer) == 0


def test_one_that_authenticated_or_left_is_not_closed() -> None:
    door = Door()
    first, second = door.come(2)

    door.waiting.remove(first)
    door.waiting.remove(second)
    timers = len(door.clock.timer)
    door.clock.advance(MAX_MS)

    assert door.aborted == []
    assert timers == 0


def test_the_time_of_a_client_that_waits_for_the_host_starts_again() -> None:
    door = Door()
    (waits,) = door.come(1, pending="a password is being checked")

    door.clock.advance(MAX_MS)
    in_time = door.aborted
    waits.pending = None
    door.clock.advance(MAX_MS)

    assert in_time == []
    assert door.aborted == [0]


def test_many_connections_are_closed_a_few_at_a_time() -> None:
    door = Door()
    door.come(3 * CLOSED_AT_ONCE)
    closed = []

    door.clock.time_ms += MAX_MS
    while len(door.clock.timer):
        door.clock.timer.run_due(door.clock.monotonic_ms(), most=1)
        closed.append(len(door.aborted))

    assert closed == [CLOSED_AT_ONCE, 2 * CLOSED_AT_ONCE, 3 * CLOSED_AT_ONCE]


def test_a_flood_writes_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    door = Door(most=3)

    door.come(1_000)

    assert len(caplog.records) == 1
    assert door.waiting.closed == 997
