"""``odradek top``: the clients of a topic, live."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from odradek_console.engine.client_entry import State
from odradek_console.engine.texts import printable
from odradek_console.figures import NOT_PUSHED, marked
from odradek_console.pictures import worst_rank
from odradek_console.rows import ClientRow, Reading, Sparkline
from odradek_console.terminal.clients import name, software
from odradek_console.terminal.keys import Keys
from odradek_console.terminal.options import (
    Wanted,
    connector,
    filter_option,
    opened_view,
    reading_options,
    show,
    time_option,
)
from odradek_console.text import Column, clipped, counted, sparkline, table_lines
from odradek_console.view import View

SPARK: Final = 12
LEAST_WIDTH: Final = 60


@dataclass(frozen=True, slots=True)
class Shown:
    """A client and its last hour."""

    row: ClientRow
    hour: Sparkline | None


def by(key: str, sign: int = -1) -> Callable[[ClientRow], tuple[float, str]]:
    """Sort by a figure, clients without it at the end.

    Args:
        key: Its id.
        sign: -1: the largest first; 1: the smallest first.
    """

    def place(row: ClientRow) -> tuple[float, str]:
        value = row.figure(key)
        return (float("inf") if value is None else sign * value), row.client_id

    return place


SORTS: Final[dict[str, Callable[[ClientRow], tuple[float | str, str]]]] = {
    "findings": lambda row: (worst_rank(row), row.client_id),
    "records": by("records"),
    "bytes": by("bytes"),
    "latency": by("latency"),
    "lag": by("lag"),
    "lag_s": by("lag_s"),
    "throttled": by("throttled"),
    "idle": by("idle", 1),
    "last": lambda row: (row.last_ms, row.client_id),
    "client": lambda row: ("", row.client_id),
    "state": lambda row: (str(row.state), row.client_id),
    "app": lambda row: (row.app, row.client_id),
    "team": lambda row: (row.owner, row.client_id),
    "library": lambda row: (software(row), row.client_id),
}


def columns() -> list[Column[Shown]]:
    """The columns of the table."""

    def number(heading: str, key: str, rank: int, least: int = 7) -> Column[Shown]:
        def cell(each: Shown) -> str:
            return marked(each.row.figures.get(key))

        return Column(heading=heading, cell=cell, least=least, most=14, rank=rank, right=True)

    return [
        Column(heading="CLIENT", cell=lambda each: name(each.row), least=12, most=32, rank=0),
        Column(heading="STATE", cell=lambda each: str(each.row.state), least=6, most=6, rank=9),
        Column(heading="FINDINGS", cell=lambda each: findings(each.row), least=14, most=32, rank=1),
        number("RECORDS", "records", 2),
        number("BYTES", "bytes", 6, 9),
        number("LATENCY", "latency", 3, 11),
        number("LAG", "lag", 4, 6),
        number("BEHIND", "lag_s", 5, 9),
        number("THROTTLED", "throttled", 8, 11),
        number("IDLE", "idle", 7, 5),
        Column(heading="LAST HOUR", cell=hour, least=SPARK, most=SPARK, rank=10, right=True),
        Column(heading="APPLICATION", cell=lambda each: each.row.app, least=11, most=24, rank=11),
        Column(heading="TEAM", cell=lambda each: each.row.owner, least=8, most=20, rank=12),
        Column(heading="LIBRARY", cell=lambda each: software(each.row), least=14, most=32, rank=13),
    ]


def hour(each: Shown) -> str:
    """The last hour of the first figure that a client has."""
    return sparkline(each.hour.values, SPARK) if each.hour is not None else ""


def findings(row: ClientRow) -> str:
    """Its causes, findings and notes; its state if that matters more."""
    if row.state is State.LIVE:
        return ", ".join(row.told)
    return ", ".join([str(row.state), *[name for name in row.told if name != "silent"]])


def picture(
    rows: Sequence[ClientRow],
    hours: Callable[[Sequence[str]], Mapping[str, Sparkline]],
    reading: Reading,
    sort: str,
    size: tuple[int, int],
) -> Iterator[str]:
    """The lines of the screen, no wider and no more than its size."""
    width, height = max(LEAST_WIDTH, size[0]), max(7, size[1])
    counts = Counter(str(each.state) for each in rows)
    troubled = sum(bool(each.findings or each.causes) for each in rows)
    states = ", ".join(f"{counts[each]} {each}" for each in State if counts[each])
    told = [counted(len(rows), "client") + (f": {states}" if states else ""), f"{troubled} with findings"]
    yield clipped("; ".join([*told, f"by {sort}"]), width)
    yield clipped(reading.problem, width)
    ordered = sorted(rows, key=SORTS[sort])
    room = height - 6
    kept = hours([each.client_instance_id for each in ordered[:room]])
    shown = [Shown(each, kept.get(each.client_instance_id)) for each in ordered[:room]]
    yield from table_lines(columns(), shown, width)
    if len(ordered) > room:
        yield f"{len(ordered) - room} more"
    yield clipped(
        f"{NOT_PUSHED} not pushed: observed by a gateway or host, or the measured lag of groups", width
    )
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
@time_option("interval", 2_000, "Time between two pictures.")
@click.option("--once", is_flag=True, help="Print one picture and end, as without a terminal.")
def top(
    bootstrap_servers: str,
    command_config: Path | None,
    topic: str,
    history_ms: int,
    owners: Path | None,
    wanted: Wanted,
    sort: str,
    interval_ms: int,
    once: bool,
) -> None:
    """Show the clients, live, those with findings first; those that are gone only with --filter state=gone.

    Keys: s for the next order, q to end.
    """
    with opened_view(connector(bootstrap_servers, command_config), topic, history_ms, owners) as view:
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


def lines_of(view: View, wanted: Wanted, sort: str, size: tuple[int, int]) -> list[str]:
    """The picture of now, without clients that are gone unless they are asked for."""
    rows = [each for each in view.clients(wanted) if each.state is not State.GONE or "state" in wanted.fields]
    return list(picture(rows, view.sparklines, view.reading(), sort, size))
