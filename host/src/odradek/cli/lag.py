"""``odradek lag``: how far the groups of any cluster are behind, in records and in time."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from odradek.cli.connect import cluster_options
from odradek.cli.errors import CommandFailed
from odradek.cli.lag_table import Movements, Row, objects, table
from odradek.cli.listing import json_option, show
from odradek.client.asked_brokers import AskedBrokers
from odradek.client.cluster_positions import ClusterPositions
from odradek.client.command_config import load_command_config
from odradek.waiting.clock import SystemClock
from odradek.waiting.steps import result_of, run_steps

ENDS_S: Final = 2.0
"""Time between two looks at the ends of partitions."""
TIMEOUT_MS: Final = 5_000
CLEAR: Final = "\x1b[H\x1b[J"
FAILING: Final = "Error: the lag is not known:"


@click.command()
@cluster_options
@click.option("--group", "names", multiple=True, metavar="GROUP", help="Only this group; may be repeated.")
@click.option(
    "--interval",
    "interval_s",
    type=click.IntRange(1, 3_600),
    default=10,
    show_default=True,
    metavar="S",
    help="Seconds between two rounds over all groups.",
)
@click.option(
    "--by",
    type=click.Choice(["group", "client"]),
    default="group",
    show_default=True,
    help="One line for each group, or for each client of a group.",
)
@click.option("--once", is_flag=True, help="Print the result of one round, and end.")
@json_option
def lag(
    bootstrap_server: str,
    command_config: Path | None,
    names: tuple[str, ...],
    interval_s: int,
    by: str,
    once: bool,
    as_json: bool,
) -> None:
    """Show how far the groups of a cluster are behind, in records and in time, the worst first, until Ctrl-C.

    BEHIND is the time since the oldest unread record was appended. PROGRESS needs two rounds.

    Needs the rights DESCRIBE on groups and topics. With READ on topics, a group that has only markers of
    transactions left has no lag.
    """
    config, clock = load_command_config(command_config), SystemClock()
    brokers = AskedBrokers(lambda: config.admin(bootstrap_server, TIMEOUT_MS), clock, lambda _problem: None)
    positions = ClusterPositions(
        brokers, clock, (lambda name: name in names) if names else lambda _name: True, lambda _topic: True
    )
    is_live = sys.stdout.isatty() and not once and not as_json
    movements = Movements(by_client=by == "client")
    try:
        for rows in rounds(positions, movements, interval_s):
            problems = list(dict.fromkeys(brokers.problems.values()))
            if not brokers.nodes:
                raise CommandFailed(f"{FAILING} {'; '.join(problems)}")
            print_round(rows, problems, as_json=as_json, is_live=is_live)
            if once:
                return
            if not (as_json or is_live):
                click.echo()
    except KeyboardInterrupt:
        if once:
            raise
    finally:
        brokers.close()


def rounds(positions: ClusterPositions, movements: Movements, interval_s: int) -> Iterator[list[Row]]:
    """The rows of each round. The ends of partitions are noted in between, which tells times."""
    while True:
        run_steps(positions.begin())
        measured = (result_of(positions.measured(group)) for group in positions.groups())
        yield movements.rows(
            (each.lag for each in measured if each is not None), positions.clock.monotonic_ms()
        )
        until_s = time.monotonic() + interval_s
        while (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, ENDS_S))
            if left_s > ENDS_S:
                run_steps(positions.note_ends())


def print_round(rows: list[Row], problems: list[str], *, as_json: bool, is_live: bool) -> None:
    """Print a round: in place of the one before on a terminal, after it elsewhere."""
    width, height = shutil.get_terminal_size()
    if as_json:
        show(True, objects(rows), ())
    elif is_live:
        lines = list(table(rows, width, height - 1 - len(problems)))
        click.echo("\n".join([CLEAR + lines[0], *lines[1:], *(each[:width] for each in problems)]))
    else:
        show(False, (), table(rows) if rows else ["no group has offsets"])
    if not is_live:
        for problem in problems:
            click.echo(f"odradek lag: {problem}", err=True)
    sys.stdout.flush()
