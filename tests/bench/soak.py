"""What connections leave behind: the slope of a program's memory over many lives, for every listener and end.

Usage, from the folder above: ``python -m bench.soak [--connections 20000] [--only "gateway"] [--end half]``

A third of the connections warm the program up. Then its private memory, with that of its children, is taken
after each of six equal parts; a line fitted to these sizes has the slope of the table. Meanwhile another
connection asks the program's first listener every few milliseconds, and the worst ping is its latest answer.
The exit status is 1 if a row leaves more than the goal, or answers later.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import ssl
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.harness import head, processes, rss_bytes
from bench.soak_lives import Spot, connect, ends_of, live_elsewhere, secured
from bench.soak_programs import PROGRAMS, Program

GOAL_KB: Final = 0.05
GOAL_PING_MS: Final = 50.0
PARTS: Final = 6
SETTLED_S: Final = 1.0
"""A program gives back what was freed about once a second."""
BETWEEN_PINGS_S: Final = 0.01
FIRST_LIVES: Final = 500
PING_SOURCE: Final = "127.0.0.1"
MOST_TIMED_OUT: Final = 6_000
"""Connections of that end in a row: each batch of them waits for the limit of time."""


def memory_bytes(pid: int) -> int:
    """The private memory of a program and its children, when it is quiet."""
    time.sleep(SETTLED_S)
    sizes = []
    for each in processes(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            sizes.append(rss_bytes(each))
    return sum(sizes)


@dataclass(slots=True)
class Pings:
    """The answer times of a connection that asks again and again."""

    spot: Spot
    worst_ms: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask until it is done. A server may close the connection after an answer: the next is a new one."""
        connection: socket.socket | None = None
        while not self.done.wait(BETWEEN_PINGS_S):
            try:
                connection = connection or secured(
                    self.spot, connect(self.spot, PING_SOURCE), self.spot.context
                )
                begin = time.monotonic()
                connection.sendall(self.spot.request)
                is_open = bool(connection.recv(65536))
                self.worst_ms = max(self.worst_ms, 1000 * (time.monotonic() - begin))
            except (ConnectionError, ssl.SSLError):
                is_open = False
            if not is_open and connection is not None:
                connection.close()
                connection = None
        if connection is not None:
            connection.close()


@contextmanager
def pinged(spot: Spot) -> Iterator[Pings]:
    """Ask a listener until the body ends."""
    pings = Pings(spot)
    thread = threading.Thread(target=pings.run)
    thread.start()
    try:
        yield pings
    finally:
        pings.done.set()
        thread.join()


def slope(sizes: Sequence[int], count: int) -> float:
    """Bytes of each of the connections between two sizes, by the line through all of them."""
    return statistics.linear_regression([count * number for number in range(len(sizes))], sizes).slope


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What connections of one end leave in a program."""

    spot: Spot
    end: str
    connections: int
    left_kb: float
    worst_ping_ms: float

    @property
    def is_missed(self) -> bool:
        return self.left_kb > GOAL_KB or self.worst_ping_ms > GOAL_PING_MS


def soaked(program: Program, spot: Spot, end: str, connections: int, parts: int = PARTS) -> Row:
    """Let connections live and end, a third of them to warm the program up."""
    count = max(1, connections * 2 // 3 // parts)
    with pinged(program.spots[0]) as pings:
        live_elsewhere(spot, end, max(1, connections // 3), seed=parts)
        sizes = [memory_bytes(program.pid)]
        for seed in range(parts):
            live_elsewhere(spot, end, count, seed)
            sizes.append(memory_bytes(program.pid))
    return Row(
        spot=spot,
        end=end,
        connections=connections,
        left_kb=slope(sizes, count) / 1000,
        worst_ping_ms=pings.worst_ms,
    )


def rows(only: Sequence[str], ends: Sequence[str], connections: int) -> Iterator[tuple[str, Row]]:
    """The rows of the programs, listeners and ends that are wanted; all of them if none is named."""
    for name, running in PROGRAMS.items():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as program:
            for spot in program.spots:
                live_elsewhere(spot, "complete", FIRST_LIVES)  # what it imports and keeps for all later ones
            for spot in program.spots:
                for end in ends_of(spot):
                    if not ends or end in ends:
                        most = MOST_TIMED_OUT if end == "timed out" else connections
                        yield name, soaked(program, spot, end, min(most, connections))


def main(options: argparse.Namespace) -> int:
    """Measure and print a table in Markdown."""
    print(head("soak"), file=sys.stderr)
    print("| program | listener | end | connections | kB left by each | worst ping, ms | |")
    print("|---|---|---|---|---|---|---|")
    missed = False
    for name, row in rows(options.only, options.end, options.connections):
        missed |= row.is_missed
        figures = f"{row.connections:,} | {row.left_kb:.3f} | {row.worst_ping_ms:.1f}"
        print(
            f"| {name} | {row.spot.name} | {row.end} | {figures} | {'MISSED' if row.is_missed else ''} |",
            flush=True,
        )
    return int(missed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=20_000, help="of each row")
    parser.add_argument(
        "--only", choices=PROGRAMS, action="append", default=[], help="a program; may be repeated"
    )
    parser.add_argument("--end", action="append", default=[], help="a kind of end; may be repeated")
    sys.exit(main(parser.parse_args()))
