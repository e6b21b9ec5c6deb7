"""The rows of all benches beside their peers, in one run and one table.

Usage, from the folder above: ``python -m bench [--quick] [--rounds 3] [--only push] [--replace-table]``

``--quick`` has the rows of records, pushes and starts, in five minutes; the whole table takes half an hour.
The benches print their own reports on standard error while they run; the table goes to standard output, or
into the README with ``--replace-table``. The exit status is 1 if a goal is missed or was not measured, or if
a bench failed. A row is marked if other programs kept more than a tenth of a core busy during it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Final

from bench import (
    delivery,
    fixture,
    gateway,
    idle_memory,
    push,
    records,
    shares,
    start,
    startup,
    storms,
    tls,
    workers,
)
from bench.comparison import Comparison
from bench.harness import CACHE, HERE, SKIPPED, UnavailableError, head, skip
from bench.others import Others

README: Final = HERE / "README.md"
BEGIN, END = "<!-- python -m bench --replace-table: begin -->\n", "<!-- end -->\n"
BUSY_CORES: Final = 0.1
MARK: Final = "*"
ROUNDS: Final = 3

BENCHES: Final[Mapping[str, Callable[[int], Iterable[Comparison]]]] = {
    "records": records.comparisons,
    "shares": shares.comparisons,
    "push": push.comparisons,
    "delivery": delivery.comparisons,
    "gateway": gateway.comparisons,
    "workers": workers.comparisons,
    "tls": tls.comparisons,
    "storms": storms.comparisons,
    "idle_memory": lambda rounds: idle_memory.comparisons(),
    "fixture": lambda rounds: fixture.comparisons(),
    "start": start.comparisons,
    "startup": startup.comparisons,
}
"""By the name of the module; each gets the number of rounds and prints its own report, too."""
QUICK: Final[Mapping[str, Callable[[int], Iterable[Comparison]]]] = {
    "records": records.quick,
    "push": push.comparisons,
    "startup": startup.comparisons,
}
"""The benches of ``--quick``."""


@dataclass(slots=True)
class Table:
    """The lines of all benches that ran."""

    lines: list[tuple[Comparison, float]] = field(default_factory=list)
    """Each with the cores that others kept busy."""
    failed: list[str] = field(default_factory=list)

    def add(self, name: str, rounds: int, *, quick: bool = False) -> None:
        """Run a bench."""
        others = Others()
        try:
            for line in (QUICK if quick else BENCHES)[name](rounds):
                self.lines.append((line, others.cores()))
        except UnavailableError as reason:
            skip(name, reason)
        except (SystemExit, Exception) as error:  # noqa: BLE001 - the other benches go on
            self.failed.append(f"{name}: failed, {type(error).__name__}: {error}")
            print(self.failed[-1], file=sys.stderr)

    @property
    def is_complete(self) -> bool:
        """Whether every bench ran, and reached its goals."""
        return bool(self.lines) and not self.failed and not any(line.is_open for line, _ in self.lines)

    def __str__(self) -> str:
        """In Markdown."""
        busy = False
        text = "| row | odradek | peer | ratio | goal | | others' cores |\n|---|---|---|---|---|---|---|\n"
        for line, cores in self.lines:
            busy |= cores > BUSY_CORES
            mark = MARK if cores > BUSY_CORES else ""
            text += f"| {' | '.join(line.cells)} | {cores:.2f}{mark} |\n"
        if busy:
            text += f"\n{MARK} Other programs kept more than {BUSY_CORES} cores busy during the row.\n"
        notes = [*dict.fromkeys(SKIPPED), *self.failed]
        return text + "".join(f"\n* {note}" for note in notes) + ("\n" if notes else "")


def replaced(page: str, table: str) -> str:
    """The page with another table between the two markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{README} has no markers: {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}\n{table.rstrip()}\n\n{end}{after}"


def arguments_of(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=BENCHES, action="append", help="only this bench; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each row")
    parser.add_argument("--quick", action="store_true", help="a part of the rows, in five minutes")
    parser.add_argument("--replace-table", action="store_true", help=f"put the table into {README.name}")
    arguments = parser.parse_args(argv)
    if arguments.replace_table and arguments.only:
        parser.error("the published table is that of one run: --replace-table without --only")
    if arguments.quick and not set(arguments.only or QUICK) <= set(QUICK):
        parser.error(f"--quick has {', '.join(QUICK)}")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benches and print the table."""
    arguments = arguments_of(argv)
    page = README.read_text(encoding="utf-8")
    replaced(page, "")
    # the servers and clients that are started find their modules compiled, as where Odradek is installed
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(CACHE / "bytecode")
    began_s, table, machine = time.monotonic(), Table(), head("all")
    with redirect_stdout(sys.stderr):
        for name in arguments.only or (QUICK if arguments.quick else BENCHES):
            print(f"\n== {name}", flush=True)
            table.add(name, arguments.rounds, quick=arguments.quick)
    minutes = (time.monotonic() - began_s) / 60
    text = f"{machine}; rounds: {arguments.rounds}, minutes: {minutes:.0f}.\n\n{table}"
    if arguments.replace_table:
        README.write_text(replaced(page, text), encoding="utf-8")
    else:
        print(text)
    return 0 if table.is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
