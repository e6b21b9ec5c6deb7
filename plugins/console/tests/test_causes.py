"""One cause of many clients' troubles, by what they have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odradek_console.causes import OF_CLIENT, Causes, causes_of, told
from odradek_console.engine.client_entry import State
from odradek_console.pictures import client_row
from odradek_console.rows import ClientRow, TroubleRow
from support.watched_clients import WatchedClients, ms

NOW_MS = 10_000_000


def row(number: int, *troubles: TroubleRow, group: str = "billing") -> ClientRow:
    clients = WatchedClients()
    clients.push(60, instance=bytes([number]) * 16)
    made = client_row(clients.fleet, next(iter(clients.fleet.clients.values())), ms(60))
    return replace(
        made,
        group_id=group,
        principal=f"User:{number}",
        address=f"10.0.0.{number}",
        version=f"4.{number}",
        interval_ms=10_000,
        findings=tuple(each.id for each in troubles),
        troubles=troubles,
    )


def behind(since_ms: int = NOW_MS) -> TroubleRow:
    return TroubleRow(id="behind", since_ms=since_ms, broker="", is_shared=False)


def test_most_members_of_a_group_have_one_cause() -> None:
    rows = [*(row(number, behind()) for number in range(3)), row(3), row(4), row(5, group="other")]

    (cause,) = causes_of(rows)
    shown = told(rows, [cause])

    assert cause.text == "behind: group billing, 3 of 5 clients"
    assert [each.findings for each in shown] == [()] * 6
    assert [bool(each.causes) for each in shown] == [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    "rows",
    [
        [row(0, behind()), row(1, behind())],
        [*(row(number, behind()) for number in range(3)), row(3), row(4), row(5)],
        [row(number, behind(NOW_MS + 100_000 * number)) for number in range(4)],
        [row(number, behind(), group=str(number)) for number in range(4)],
    ],
    ids=["two", "half", "not-together", "nothing-in-common"],
)
def test_what_is_no_cause(rows: list[ClientRow]) -> None:
    assert causes_of(rows) == []


def test_clients_that_are_gone_do_not_count() -> None:
    gone = [replace(row(number), state=State.GONE) for number in range(3, 9)]

    assert len(causes_of([*(row(number, behind()) for number in range(3)), *gone])) == 1


def test_the_last_clients_in_trouble_still_have_the_cause() -> None:
    causes = Causes()
    before = causes.at([row(number, behind()) for number in range(3)], NOW_MS)

    left = causes.at([row(0, behind()), row(1), row(2)], NOW_MS + 60_000)
    well = causes.at([row(0), row(1), row(2)], NOW_MS + 61_000)

    assert [each.text for each in left] == [each.text for each in before]
    assert well == []


def test_each_client_is_counted_once_however_many_causes_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def group(client: ClientRow) -> str:
        nonlocal asked
        asked += 1
        return client.group_id

    monkeypatch.setitem(OF_CLIENT, "group", group)
    rows = [row(number, behind(), group=f"g{number // 4}") for number in range(100)]

    assert len(causes_of(rows)) == 25
    assert asked <= 2 * len(rows)  # once as one in trouble, once as one of all
