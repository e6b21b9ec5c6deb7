"""How long a test waits for a host: the fixture's start and stop, and the plugin's cost to a pytest session.

Usage, from the folder above: ``python -m bench.fixture [--starts 100] [--runs 5]``
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import odradek.testing
from bench.comparison import Comparison, Goal
from bench.frames import API_VERSIONS_V3, ask
from bench.harness import head, spread
from odradek.testing import host_context

GOAL_S = 0.3
STARTS = 100
FIRST = """
import time

def test_first(request):
    begin = time.perf_counter()
    request.getfixturevalue("odradek_host")
    print(f"first={time.perf_counter() - begin:.4f}")
"""
NOTHING = "def test_nothing(): pass\n"


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def starts(count: int) -> tuple[list[float], list[float]]:
    """Seconds of each start, and of each stop with a connected client."""
    started, stopped = [], []
    for _ in range(count):
        begin = time.perf_counter()
        context = odradek.testing.host()
        host = context.__enter__()
        started.append(time.perf_counter() - begin)
        with socket.create_connection(host.address) as connection:
            ask(connection, API_VERSIONS_V3)
            begin = time.perf_counter()
            context.__exit__()
            stopped.append(time.perf_counter() - begin)
    return started, stopped


def line_of(started: list[float]) -> Comparison:
    """The line of the table."""
    p95 = percentile(started, 0.95)
    return Comparison(row="fixture, p95 of a start", unit="s", ours=p95, goal=Goal(most=GOAL_S))


def comparisons() -> Iterator[Comparison]:
    """The lines of the table."""
    yield line_of(starts(STARTS)[0])


def session(folder: Path, test: str, *options: str) -> tuple[float, str]:
    """Seconds of a pytest session with one test file, and its output. Bytecode is cached in the folder."""
    file = folder / "test_it.py"
    file.write_text(test)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-c", os.devnull, "-p", "no:cacheprovider"]
    begin = time.perf_counter()
    done = subprocess.run(
        [*command, *options, str(file)], env=environment, capture_output=True, text=True, check=False
    )
    return time.perf_counter() - begin, done.stdout


def first_start(folder: Path) -> float:
    """Seconds of the first host of a session, which imports all modules."""
    found = re.search(r"first=([\d.]+)", session(folder, FIRST)[1])
    assert found is not None, "pytest does not know the fixture: install odradek with pip"
    return float(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print(head("fixture"), file=sys.stderr)
    started, stopped = starts(arguments.starts)
    for what, values in (("start", started), ("stop", stopped)):
        p50, p95, most = statistics.median(values), percentile(values, 0.95), max(values)
        print(f"{what} of {len(values)}: p50 {p50:.4f} s, p95 {p95:.4f} s, longest {most:.4f} s")
    print(line_of(started))
    memory, host_context.SHARED_MEMORY = host_context.SHARED_MEMORY, Path(os.devnull)
    on_disk = starts(arguments.starts)[0]
    host_context.SHARED_MEMORY = memory
    print(f"start with SQLite on the disk: p50 {statistics.median(on_disk):.4f} s")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        first_start(place)  # writes the bytecode
        firsts = [first_start(place) for _ in range(arguments.runs)]
        print(f"first start of a session, imports included: {spread(firsts, 3)} s")
        for name, options in (("with", ("--co",)), ("without", ("--co", "-p", "no:odradek"))):
            spent = [session(place, NOTHING, *options)[0] for _ in range(arguments.runs)]
            print(f"pytest --co {name} the plugin: {spread(spent, 3)} s")


if __name__ == "__main__":
    main()
