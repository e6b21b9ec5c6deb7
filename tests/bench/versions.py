"""Rows by version of Python: pushes, one-record produce, fetch of many batches, and a start.

Usage, from the folder above: ``python -m bench.versions PYTHON... [--rounds 3]``, where each PYTHON is an
interpreter with ``pip install -e '.[all,dev]'``.

The interpreters take turns, and each figure is a median of the rounds. The ratio in brackets is that to the
C program of the row in the same rounds, so it does not depend on the speed of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.comparison import figure
from bench.harness import CACHE, NOT_MEASURED, head
from bench.rows import C_EPOLL, MOCK, UVLOOP

ROWS = {
    "push, small": ("push", "small", C_EPOLL),
    "push, java": ("push", "java", C_EPOLL),
    "push, librd": ("push", "librd", C_EPOLL),
    "produce, single": ("produce", "single", MOCK),
    "fetch, many": ("fetch", "many", MOCK),
}
START = "start of `odradek serve`"
ONE_START = "from bench.startup import measured; print(measured(3)[0].ours)"

Costs = dict[str, dict[str, list[float]]]
"""By row and server: a figure of each round."""


def output(python: Path, *arguments: str) -> str:
    """The output of a program. Its modules are compiled once, as where Odradek is installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(CACHE / "bytecode")
    done = subprocess.run(
        [python, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def measure(python: Path, costs: Costs) -> None:
    """Add a round of an interpreter."""
    for title, (bench, row, peer) in ROWS.items():
        servers = ("--server", UVLOOP, "--server", peer)
        found = output(python, "-m", f"bench.{bench}", "--row", row, *servers, "--rounds", "1", "--json")
        for server, windows in json.loads(found)[row].items():
            costs.setdefault(title, {}).setdefault(server, []).append(windows[0]["cpu_us"])
    seconds = float(output(python, "-c", ONE_START).splitlines()[-1])
    costs.setdefault(START, {}).setdefault(UVLOOP, []).append(seconds)


def cell(costs: Mapping[str, Sequence[float]], peer: str) -> str:
    """A cost, and its ratio to the peer's."""
    medians = {server: statistics.median(values) for server, values in costs.items()}
    if UVLOOP not in medians:
        return NOT_MEASURED
    if not peer:
        return f"{figure(medians[UVLOOP])} s"
    ratio = figure(medians[UVLOOP] / medians[peer]) if medians.get(peer, 0) > 0 else NOT_MEASURED
    return f"{figure(medians[UVLOOP])} µs ({ratio})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pythons", metavar="PYTHON", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(head("versions"), file=sys.stderr)
    names = {
        python: output(python, "-c", "import sys; print(sys.version.split()[0])").strip()
        for python in options.pythons
    }
    found: dict[Path, Costs] = {python: {} for python in options.pythons}
    for _ in range(options.rounds):
        for python, costs in found.items():
            measure(python, costs)
    print(f"| | {' | '.join(names.values())} |\n|---|{'---|' * len(names)}")
    for title in (*ROWS, START):
        peer = ROWS[title][2] if title in ROWS else ""
        print(f"| {title} | {' | '.join(cell(costs[title], peer) for costs in found.values())} |")


if __name__ == "__main__":
    main()
