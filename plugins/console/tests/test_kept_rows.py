"""Rows of clients that are kept until something changes."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek_console import pictures
from odradek_console.engine.client import Client
from odradek_console.engine.client_entry import State
from odradek_console.pictures import client_row
from odradek_console.rows import ClientRow
from odradek_console.view import AT_ONCE, View
from support.delta_clients import A, B
from support.watched_clients import WatchedClients, level, ms

C = b"C" * 16
ASSIGNED = "consumer.coordinator.assigned.partitions"


class Clock:
    """Epoch milliseconds that a test sets."""

    def __init__(self) -> None:
        self.at_s = 60.0

    def __call__(self) -> int:
        return ms(self.at_s)


class Watched:
    """A view with a clock, and its clients."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.view = View(AdminClient, now_ms=self.clock)  # type: ignore[arg-type]
        self.clients = WatchedClients(self.view.fleet)

    def row(self, at_s: float, instance: bytes = A) -> ClientRow:
        self.clock.at_s = at_s
        return {row.client_id: row for row in self.view.clients()}[instance.decode()]

    def push(self, at_s: float, value: float = 1.0, instance: bytes = A, **facts: str) -> None:
        value_now = level(ASSIGNED, value, at_s)
        self.clients.push(at_s, value_now, instance=instance, client_id=instance.decode(), **facts)


def test_a_row_stays_until_a_push() -> None:
    watched = Watched()
    watched.push(60)
    first, same = watched.row(60), watched.row(61)
    watched.push(70)

    assert same is first
    assert watched.row(70).pushes == 2


def test_a_row_changes_when_its_client_falls_silent_and_when_it_is_gone() -> None:
    watched = Watched()
    watched.push(60)

    states = [watched.row(at_s).state for at_s in (60, 1_000, 10_000, 10_001)]

    assert states == [State.LIVE, State.SILENT, State.GONE, State.GONE]
    assert "silent" in watched.row(1_000).findings
    assert watched.row(10_000).findings == ()


def test_the_row_of_a_silent_client_is_not_made_for_each_page() -> None:
    watched = Watched()
    watched.push(60)

    first = watched.row(1_000)

    assert first.state is State.SILENT
    assert watched.row(1_005) is first
    assert watched.row(1_021) is not first


def test_a_row_changes_with_the_partitions_of_its_group() -> None:
    watched = Watched()
    for instance in (A, B, C):
        watched.push(60, 10.0, instance, group_id="g")
    before = watched.row(60)
    for at in (120, 180, 240):
        for instance, partitions in ((A, 10.0), (B, 1.0), (C, 1.0)):
            watched.push(at, partitions, instance, group_id="g")
    after = watched.row(240)

    assert before.notes == ()
    assert after.notes == ("uneven-partitions",)
    assert after.findings == ()
    assert watched.row(241) is after


def test_the_rows_of_clients_that_have_pushed_are_made_some_at_a_time() -> None:
    watched = Watched()
    for instance in (A, B, C):
        watched.push(60, 1.0, instance)

    done = [watched.view.rows.check(2, ms(60)) for _ in range(3)]

    assert done == [False, True, True]
    assert len(watched.view.rows.kept) == 3


def test_the_reader_is_let_in_between() -> None:
    watched = Watched()
    for number in range(2 * AT_ONCE):
        watched.clients.push(60, instance=number.to_bytes(16, "big"))
    lock, held = watched.view.lock, []

    class Counted:
        def __enter__(self) -> None:
            held.append(lock.acquire())

        def __exit__(self, *_: object) -> None:
            lock.release()

    watched.view.lock = Counted()  # type: ignore[assignment]

    assert len(watched.view.clients()) == 2 * AT_ONCE
    assert len(held) == 3


def test_a_client_page_makes_few_rows_of_many_with_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, made = Watched(), 0
    for number in range(1_000):
        watched.clients.push(60, instance=number.to_bytes(16), client_id="service")

    def counted(*arguments: Any) -> ClientRow:
        nonlocal made
        made += 1
        return client_row(*arguments)

    monkeypatch.setattr(pictures, "client_row", counted)
    detail = watched.view.client("service")

    assert detail is not None
    assert len(detail.others) == pictures.MOST_OTHERS
    assert made == 1 + pictures.MOST_OTHERS


def test_all_clients_are_looked_at_once_a_second_however_many_push(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, looks = Watched(), 0
    each_once = watched.view.fleet.each_once

    def counted() -> list[Client]:
        nonlocal looks
        looks += 1
        return each_once()

    monkeypatch.setattr(watched.view.fleet.groups, "clients", counted)
    for number in range(100):
        instance = number.to_bytes(2) * 8
        watched.clients.push(60 + number / 100, instance=instance, client_id=str(number), group_id="billing")
        watched.view.rows.check(10, ms(60 + number / 100))
        watched.view.rows.rows(watched.view.fleet.each_once(), ms(60))  # a page that takes long

    assert looks == 1
    assert len(watched.view.fleet.groups.at(ms(61))["billing"].members) == 100
    assert looks == 2
