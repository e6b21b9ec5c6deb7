"""``odradek top``: the clients of a topic, live."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from odradek_console.engine.client_entry import State
from odradek_console.engine.texts import printable
from odradek_console.rows import ClientRow, FiguresRow, Reading
from odradek_console.terminal.clients import name, software
from odradek_console.terminal.keys import Keys
from odradek_console.terminal.options import (
    connector,
    filter_option,
    milliseconds,
    opened_view,
    reading_options,
    show,
)
from odradek_console.text import Column, age, clipped, counted, short, sparkline, table_lines
from odradek_console.view import View

SPARK: Final = 12
LEAST_WIDTH: Final = 60


def figure(each: FiguresRow, key: str) -> float | None:
    """The value of a figure; None if the client does not have it."""
    found = each.figures.get(key)
    return found.value if found is not None else None


def largest(key: str) -> Callable[[FiguresRow], tuple[float, str]]:
    """Sort by a figure, the largest first, clients without it at the end."""

    def place(each: FiguresRow) -> tuple[float, str]:
        value = figure(each, key)
        return (float("inf") if value is None else -value), each.row.client_id

    return place


def smallest(key: str) -> Callable[[FiguresRow], tuple[float, str]]:
    """Sort by a figure, the smallest first, clients without it at the end."""

    def place(each: FiguresRow) -> tuple[float, str]:
        value = figure(each, key)
        return (float("inf") if value is None else value), each.row.client_id

    return place


SORTS: Final[dict[str, Callable[[FiguresRow], tuple[float, str]]]] = {
    "findings": lambda each: (-len(each.row.findings), each.row.client_id),
    "rate": largest("rate"),
    "latency": largest("latency"),
    "lag": largest("lag"),
    "idle": smallest("idle"),
    "last": lambda each: (each.row.last_ms, each.row.client_id),
    "client": lambda each: (0.0, each.row.client_id),
}


def recent(each: FiguresRow) -> str:
    """The recent values of the first figure that a client has."""
    found = next(iter(each.figures.values()), None)
    return sparkline(found.points, SPARK) if found is not None else ""


def columns(now_ms: int) -> list[Column[FiguresRow]]:
    """The columns of the table."""

    def number(key: str) -> Callable[[FiguresRow], str]:
        return lambda each: short(figure(each, key))

    return [
        Column(heading="CLIENT", cell=lambda each: name(each.row), least=14, most=32, rank=0),
        Column(heading="FINDINGS", cell=findings, least=16, most=32, rank=1),
        Column(heading="REC/S", cell=number("rate"), least=6, most=6, rank=2, right=True),
        Column(heading="MS", cell=number("latency"), least=6, most=6, rank=3, right=True),
        Column(heading="RECENT", cell=recent, least=SPARK, most=SPARK, rank=6),
        Column(heading="LAG", cell=number("lag"), least=6, most=6, rank=5, right=True),
        Column(heading="IDLE", cell=number("idle"), least=5, most=6, rank=7, right=True),
        Column(
            heading="LAST",
            cell=lambda each: age(now_ms - each.row.last_ms),
            least=4,
            most=5,
            rank=4,
            right=True,
        ),
        Column(heading="SOFTWARE", cell=lambda each: software(each.row), least=14, most=32, rank=8),
    ]


def findings(each: FiguresRow) -> str:
    """Its findings; its state if that matters more."""
    found = [*each.row.causes, *each.row.findings]
    if each.row.state is State.LIVE:
        return ", ".join(found)
    return ", ".join([str(each.row.state), *[name for name in found if name != "silent"]])


def picture(
    rows: Sequence[FiguresRow], reading: Reading, sort: str, now_ms: int, size: tuple[int, int]
) -> Iterator[str]:
    """The lines of the screen, no wider and no more than its size."""
    width, height = max(LEAST_WIDTH, size[0]), max(6, size[1])
    live = sum(each.row.state is State.LIVE for each in rows)
    troubled = sum(bool(each.row.findings) for each in rows)
    yield f"{counted(len(rows), 'client')}, {live} live, {troubled} with findings; sorted by {sort}"
    yield clipped(reading.problem, width)
    ordered = sorted(rows, key=SORTS[sort])
    room = height - 5
    yield from table_lines(columns(now_ms), ordered[:room], width)
    if len(ordered) > room:
        yield f"{len(ordered) - room} more"
    yield "s: next order   q: end"


@click.command("top", epilog="\b\nExample:\n  odradek top --bootstrap-server localhost:9092")
@reading_options
@filter_option
@click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
    default="findings",
    show_default=True,
    help="The order of the clients.",
)
@click.option(
    "--interval",
    "interval_ms",
    default="2s",
    show_default=True,
    metavar="TIME",
    callback=milliseconds,
    help="Time between two pictures.",
)
@click.option("--once", is_flag=True, help="Print one picture and end, as without a terminal.")
def top(
    bootstrap_server: str,
    command_config: Path | None,
    topic: str,
    history_ms: int,
    owners: Path | None,
    wanted: Callable[[ClientRow], bool],
    sort: str,
    interval_ms: int,
    once: bool,
) -> None:
    """Show the clients that push telemetry, live, those with findings first.

    Keys: s for the next order, q to end.
    """
    with opened_view(connector(bootstrap_server, command_config), topic, history_ms, owners) as view:
        console = Console(highlight=False)
        if once or not console.is_terminal:
            show(lines_of(view, wanted, sort, (console.width, 10_000))[:-1])
            return
        with Keys(sys.stdin) as keys, Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                size = (console.width, console.height)
                lines = map(printable, lines_of(view, wanted, sort, size))
                text = Text("\n".join(lines), no_wrap=True)
                live.update(text, refresh=True)
                key = keys.wait(interval_ms / 1000)
                if key == "q":
                    return
                if key == "s":
                    names = list(SORTS)
                    sort = names[(names.index(sort) + 1) % len(names)]


def lines_of(view: View, wanted: Callable[[ClientRow], bool], sort: str, size: tuple[int, int]) -> list[str]:
    """The picture of now."""
    now_ms = time.time_ns() // 1_000_000
    return list(picture(view.figures(wanted), view.reading(), sort, now_ms, size))
