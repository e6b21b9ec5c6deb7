"""The overview of the first page: states, what has changed, and the worst clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from odradek_console.engine.client_entry import State
from odradek_console.engine.subscription_history import SubscriptionChange
from odradek_console.overview import Overview, overview_of
from odradek_console.pictures import client_row
from odradek_console.rows import ClientRow, Figure
from support.watched_clients import WatchedClients, ms

NOW_MS = 100_000_000
HOUR_MS = 3_600_000


def row(number: int, **facts: Any) -> ClientRow:
    clients = WatchedClients()
    clients.push(60, instance=bytes([number]) * 16, client_id=f"orders-{number}")
    made = client_row(clients.fleet, next(iter(clients.fleet.clients.values())), ms(60))
    long_ago = NOW_MS - 5 * HOUR_MS
    return replace(made, **({"first_ms": long_ago, "connected_ms": long_ago, "interval_ms": 10_000} | facts))


def changes(*rows: ClientRow) -> list[str]:
    return [each.text for each in overview_of(rows, [], NOW_MS).changes]


def figure(value: float, unit: str = "ms") -> Figure:
    return Figure(value=value, unit=unit, what="max", source="pushed", metric="m")


def test_a_deploy_is_a_new_version_of_an_application() -> None:
    new = [row(number, first_ms=NOW_MS - 60_000, version="4.4.0") for number in (3, 4)]

    found = changes(row(1), row(2, state=State.GONE), *new)

    assert found == ["orders: apache-kafka-java 4.3.0 → apache-kafka-java 4.4.0, 2 instances"]


def test_a_restart_is_new_instances_in_the_place_of_others() -> None:
    assert changes(row(1, state=State.GONE), row(2, first_ms=NOW_MS - 60_000)) == [
        "orders: 1 instance started again"
    ]
    assert changes(row(1), row(2, first_ms=NOW_MS - 60_000)) == ["orders: 1 instance new"]


def test_what_was_there_when_the_console_began_to_read_is_not_new() -> None:
    assert changes(*[row(number, first_ms=NOW_MS - 60_000 + number) for number in range(3)]) == []


def test_clients_that_connect_again_together_tell_of_a_restart() -> None:
    again = [row(number, before_node=2, node_id=1, connected_ms=NOW_MS - 60_000) for number in range(3)]
    others = [row(number, node_id=2) for number in (5, 6)]

    assert changes(*again, *others) == ["broker 2: 3 of 5 clients connected again: a restart?"]
    assert changes(*again, *others, *others) == []
    assert changes(again[0], replace(again[1], connected_ms=NOW_MS - 1_000_000), others[0]) == []


def test_a_changed_subscription_is_told_for_an_hour() -> None:
    def change(ago_ms: int) -> SubscriptionChange:
        return SubscriptionChange(
            time_ms=NOW_MS - ago_ms, name=f"s{ago_ms}", act="changed", before={}, after={}, user="ann"
        )

    (found,) = overview_of([], [change(5), change(2 * HOUR_MS)], NOW_MS).changes

    assert found.text == "subscription s5 changed by ann"


def test_the_worst_are_those_with_the_most_or_the_least_of_a_figure() -> None:
    rows = [row(number, figures={"latency": figure(number), "idle": figure(number)}) for number in range(12)]
    found: Overview = overview_of(
        [*rows, row(20, state=State.GONE, figures={"latency": figure(99)})], [], NOW_MS
    )

    latency, idle = found.worst

    assert [each.client_id for each, _ in latency.clients] == [
        f"orders-{number}" for number in range(11, 1, -1)
    ]
    assert [text for _, text in idle.clients][:2] == ["0 ms max", "1 ms max"]
    assert (latency.link, idle.link) == ("/?sort=-latency", "/?sort=idle")
    assert found.states == {"live": 12, "gone": 1}
