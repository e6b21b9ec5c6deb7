"""The picture of ``odradek top``: figures, marks and order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rich.cells import cell_len

from odradek.client.admin import AdminClient
from odradek_console.engine.client_entry import State
from odradek_console.terminal.options import Wanted
from odradek_console.terminal.top import SORTS, lines_of
from odradek_console.view import View
from support.delta_clients import counter, point
from support.watched_clients import WatchedClients, level, ms, total


def pushes(clients: WatchedClients) -> Iterator[None]:
    """A producer that is slow, one that is observed only, and one that has left."""
    for at in range(60, 421, 60):
        clients.push(
            at,
            total("producer.record.send.total", 60_000, at, at - 60),
            level("producer.node.request.latency.max", 7_000, at, node_id="node-1"),
            client_id="slow",
            instance=b"1" * 16,
        )
        bytes_sent = counter(point(6e8, at - 60, at), name="io.odradek.observed.client.produce.bytes")
        clients.push(at, bytes_sent, client_id="web", instance=b"2" * 16, observed=True)
        yield
    clients.push(420, client_id="left", instance=b"3" * 16, terminating=True)


@pytest.fixture
def view() -> View:
    found = View(AdminClient, now_ms=lambda: ms(421))  # type: ignore[arg-type]
    for _ in pushes(WatchedClients(found.fleet)):
        pass
    found.reader.progress.problem = ""
    return found


def names(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines if line.startswith(("slow", "web", "left"))]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_and_figures_have_their_marks(view: View, width: int) -> None:
    lines = lines_of(view, Wanted(()), "findings", (width, 24))
    slow, web = (next(line for line in lines if line.startswith(each)) for each in ("slow", "web"))

    assert max(map(cell_len, lines)) <= width
    assert "1000/s" in slow
    assert "slow-produce" in slow
    assert width < 80 or "10 MB/s*" in web
    assert width < 200 or "▁" in slow + web or "█" in slow + web


def test_those_that_are_gone_are_shown_if_they_are_asked_for(view: View) -> None:
    usual = lines_of(view, Wanted(()), "client", (80, 24))
    gone = lines_of(view, Wanted((("state", "gone"),)), "client", (80, 24))

    assert (names(usual), names(gone)) == (["slow", "web"], ["left"])
    assert usual[0] == "2 clients: 2 live; 1 with findings; by client"
    assert State.GONE in gone[0]


@pytest.mark.parametrize("sort", SORTS)
def test_each_order_shows_all(view: View, sort: str) -> None:
    assert sorted(names(lines_of(view, Wanted(()), sort, (80, 24)))) == ["slow", "web"]


def test_the_largest_or_the_worst_is_first(view: View) -> None:
    by_bytes, by_latency = (lines_of(view, Wanted(()), each, (80, 24)) for each in ("bytes", "latency"))

    assert names(by_bytes) == ["web", "slow"]
    assert names(by_latency) == ["slow", "web"]
