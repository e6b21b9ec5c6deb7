"""The time from ``odradek serve`` on the command line to the first answered request, and its parts.

Usage, from the folder above: ``python -m bench.startup [--runs 7]``
"""

from __future__ import annotations

import argparse
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from bench.comparison import Comparison, Goal
from bench.frames import API_VERSIONS_V3, ask
from bench.harness import UnavailableError, cpu_ns, head, pipes, spread

GOAL_S = 0.5
SERVE = "from odradek.cli.main import main; main()"  # as in the console script
IMPORTS_SHOWN = 12


def first_answer(directory: str) -> tuple[float, float]:
    """Wall and CPU seconds from the start of a host with an empty data directory to an answered ApiVersions.

    Raises:
        UnavailableError: The host did not start.
    """
    options = ["serve", "--set", "listeners=PLAINTEXT://127.0.0.1:0", "--set", f"data.dir={directory}/data"]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        ready = re.search(r"PLAINTEXT://[^ ,]*:(\d+)", pipes(process)[1].readline())
        if ready is None:
            raise UnavailableError("odradek serve ended before it was ready")
        with socket.create_connection(("127.0.0.1", int(ready[1]))) as connection:
            ask(connection, API_VERSIONS_V3)
        return time.perf_counter() - begin, cpu_ns(process.pid) / 1e9
    finally:
        process.terminate()
        process.communicate()


def python_s(code: str) -> float:
    """Wall seconds of a Python process that runs ``code``."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def slowest_imports(module: str) -> list[tuple[float, str]]:
    """Milliseconds of each top-level package's own modules, the most expensive first."""
    timed = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {module}"],
        capture_output=True,
        text=True,
        check=True,
    )
    spent_ms: dict[str, float] = {}
    for own_us, name in re.findall(r"import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)", timed.stderr):
        package = ".".join(name.split(".")[:2])
        spent_ms[package] = spent_ms.get(package, 0) + int(own_us) / 1000
    return sorted(((ms, package) for package, ms in spent_ms.items()), reverse=True)


def median_of(runs: int, measure: Callable[[], float]) -> str:
    return spread([measure() for _ in range(runs)], 3)


def measured(runs: int) -> tuple[Comparison, list[float]]:
    """The line of the table for a start of ``odradek serve``, and CPU seconds of each."""
    starts = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as directory:
            starts.append(first_answer(directory))
    wall_s = [wall for wall, _ in starts]
    print(f"odradek serve to the first answer: {spread(wall_s, 3)} s")
    row = "odradek serve to the first answer"
    line = Comparison(row=row, unit="s", ours=statistics.median(wall_s), goal=Goal(most=GOAL_S))
    return line, [cpu for _, cpu in starts]


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    yield measured(rounds)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    print(head("start-up"), file=sys.stderr)
    print(f"python -c pass: {median_of(runs, lambda: python_s('pass'))} s")
    print(f"import odradek.cli.main: {median_of(runs, lambda: python_s('import odradek.cli.main'))} s")
    print(
        f"import odradek.programs.host: {median_of(runs, lambda: python_s('import odradek.programs.host'))} s"
    )
    line, cpu_s = measured(runs)
    print(line)
    print(f"  of CPU: {spread(cpu_s, 3)} s")
    print("  imports by package, ms:")
    for ms, package in slowest_imports("odradek.programs.host")[:IMPORTS_SHOWN]:
        print(f"    {ms:7.1f}  {package}")


if __name__ == "__main__":
    main()
