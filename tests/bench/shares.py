"""CPU time of one record that a share group gets and accepts: odradek and Apache Kafka.

Each fetch accepts what the one before has got. The records are in batches of as many as a fetch asks for, so
a fetch of one record reads a batch of one. Each window is a group of its own that reads from the beginning.

Usage, from the folder above: ``python -m bench.shares [--row TEXT] [--rounds 3]``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from bench.comparison import Comparison, Goal
from bench.harness import cores, head, started
from bench.record_window import measure
from bench.records import SERVERS, WARM_UP, Windows, command, report
from bench.servers import KAFKA

RECORDS: Final = {1: 1_000, 10: 5_000, 500: 30_000}
"""Of a window, by how many each fetch gets."""
LENGTHS: Final = "200-2000 B"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of group."""

    at_once: int
    members: int

    @property
    def title(self) -> str:
        members = f"{self.members} member{'s' * (self.members > 1)}"
        return f"share fetches of {self.at_once} record{'s' * (self.at_once > 1)}, {members}"

    @property
    def goals(self) -> tuple[Goal, ...]:
        return (Goal(peer=KAFKA, most=1.0),)

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the members."""
        return {
            "topic": f"shares-{self.at_once}-{self.members}",
            "records": RECORDS[self.at_once],
            "at_once": self.at_once,
            "members": self.members,
            "partitions": self.members,
            "lengths": LENGTHS,
        }


ROWS: Final = [Row(at_once=at_once, members=members) for members in (1, 8) for at_once in RECORDS]


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    return measured(["--rounds", str(rounds)])


def measured(argv: Sequence[str]) -> Iterator[Comparison]:
    """Run the rows that the command line names, each on all servers in turn; the lines of the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", default="", help="only rows whose names contain this")
    parser.add_argument("--server", dest="servers", choices=SERVERS, action="append", help="only this server")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    server_core, load_core = cores()
    print(head("shares"), file=sys.stderr)
    with ExitStack() as stack:
        servers = dict(started(stack, arguments.servers or SERVERS, command, server_core))
        for row in (each for each in ROWS if arguments.row in each.title):
            windows: Windows = {name: [] for name in servers}
            for number in range(-WARM_UP, arguments.rounds):
                for name, server in servers.items():
                    window = measure(server, "share", row.settings, load_core)
                    if number >= 0:
                        windows[name].append(window)
            yield from report(row, windows)


if __name__ == "__main__":
    for _ in measured(sys.argv[1:]):
        pass
