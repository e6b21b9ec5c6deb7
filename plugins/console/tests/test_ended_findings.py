"""What was found and is over, and who is silent while nobody is heard."""

from __future__ import annotations

import pytest

from odradek_console.engine.client_entry import State
from odradek_console.engine.heard import Heard
from odradek_console.pictures import client_detail, client_row
from support.delta_clients import A, B
from support.watched_clients import WatchedClients, level, ms

MINUTE_S = 60
OTHER = b"C" * 16


def slow(clients: WatchedClients, at: float, latency_ms: float) -> None:
    clients.push(at, level("producer.node.request.latency.max", latency_ms, at, node_id="1"))


def test_a_finding_that_is_over_can_be_read_for_a_quarter_of_an_hour() -> None:
    clients = WatchedClients()
    for minute in range(1, 6):
        slow(clients, MINUTE_S * minute, 9_000)
    before = client_detail(clients.fleet, clients.fleet.clients[A], ms(300))

    slow(clients, 360, 20)
    over = client_detail(clients.fleet, clients.fleet.clients[A], ms(360))
    for minute in range(7, 22):
        slow(clients, MINUTE_S * minute, 20)
    forgotten = client_detail(clients.fleet, clients.fleet.clients[A], ms(360 + 901))

    assert [each.id for each in before.findings] == ["slow-produce-requests"]
    assert before.ended == ()
    assert over.findings == ()
    assert over.row.findings == ()
    assert [(each.id, each.ended_ms) for each in over.ended] == [("slow-produce-requests", ms(360))]
    assert forgotten.ended == ()


def test_notes_are_no_findings() -> None:
    clients = WatchedClients()

    clients.push(600, level("producer.request.rate", 1, 480))
    row = client_row(clients.fleet, clients.fleet.clients[A], ms(600))

    assert (row.findings, row.notes) == ((), ("clock-skew",))
    assert client_detail(clients.fleet, clients.fleet.clients[A], ms(601)).ended == ()


@pytest.mark.parametrize(
    ("others_s", "state"),
    [((60, 120, 180, 240, 300), State.SILENT), ((60,), State.LIVE), ((), State.SILENT)],
    ids=["others-are-heard", "nobody-is-heard", "alone"],
)
def test_nobody_is_silent_while_nobody_is_heard(others_s: tuple[float, ...], state: State) -> None:
    clients = WatchedClients()
    clients.push(60, instance=A)
    for at in others_s:
        clients.push(at, instance=B)

    assert client_row(clients.fleet, clients.fleet.clients[A], ms(300)).state is state


def test_the_time_in_which_a_place_was_away_does_not_count() -> None:
    clients = WatchedClients()
    for at in (60, 120):
        clients.push(at, instance=A)
        clients.push(at, instance=B)

    clients.push(720, instance=B)
    back = client_row(clients.fleet, clients.fleet.clients[A], ms(721)).state
    for at in range(780, 1_000, 60):
        clients.push(at, instance=B)

    assert back is State.LIVE
    assert client_row(clients.fleet, clients.fleet.clients[A], ms(960)).state is State.SILENT


def test_time_between_pushes_is_no_time_without_anybody() -> None:
    heard = Heard()

    for at in range(60_000, 600_000, 60_000):
        heard.push(A, at, 60_000)
        heard.push(OTHER, at + 45_000, 60_000)

    assert heard.away_ms(A, 540_000, 600_000) == 0
    assert heard.away_ms(A, 540_000, 900_000) == 900_000 - 585_000
