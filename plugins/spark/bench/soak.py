"""Memory of every process over a long time: ``python plugins/spark/bench/soak.py --minutes 60 --rate 1000``.

It runs ``odradek serve`` with a durable log, clients that push like the Java client and like librdkafka, and
``odradek spark ingest`` with a batch every ten seconds (with ``--command run``, the jobs too). Time begins
with the first batch. A process does not grow if its median of the last sixth of the time is about that of the
second sixth. Linux only: memory is read from /proc. Everything stops by itself at the end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from process_memory import ProcessMemory
from soaked import Minute, Plan, Soaked, soak

from bench.harness import head

MIB = 1 << 20
COLUMNS = ("host", "payload worker", "driver", "JVM")
HEAD = ("min", "sent", "accepted", "refused", "in tables", "behind", *COLUMNS, "planners", "workers")
WIDTHS = (6, 10, 10, 8, 10, 8, 6, 15, 7, 6, 9, 8)


def show(minute: Minute) -> None:
    """Print a row; memory in MiB."""
    memory = minute.memory
    planners = sum(size for role, size in memory.items() if role.startswith("planner"))
    workers = sum(size for role, size in memory.items() if role.startswith("Python worker"))
    sizes = [*(memory.get(role, 0) for role in COLUMNS), planners, workers]
    counts = (minute.sent, minute.accepted, minute.refused, minute.in_table, minute.lag)
    row(f"{minute.at_s / 60:.1f}", *map(str, counts), *(f"{size / MIB:.0f}" for size in sizes))


def row(*cells: str) -> None:
    print("".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)), flush=True)


def report(found: Soaked) -> None:
    """Print the memory of each long-lived process, and the totals of pushes."""
    print(f"\n{'process':40}{'pid':>8}{'watched s':>11}{'2nd sixth':>11}{'last sixth':>12}{'ratio':>8}")
    for process in found.processes:
        print(line(process))
    rate = found.in_time / found.last.at_s
    print(
        f"\n{found.sent} pushes sent by {found.instances} client instances, {found.accepted} accepted "
        f"({rate:.0f}/s after the first batch), refused by error code: {found.refused}, "
        f"{found.broken} connections broke"
    )
    print(
        f"{found.in_topic} in the topic, {found.in_table} in the table pushes ({found.distinct} different), "
        f"{found.points} points of {found.points_announced}, {found.dead_letters} dead letters"
    )
    print(f"at the end {found.last.lag} pushes behind, all there {found.drained_s:.0f} s later")


def line(process: ProcessMemory) -> str:
    early, late = process.sixth(1) / MIB, process.sixth(5) / MIB
    return (
        f"{process.role:40}{process.pid:>8}{process.life_s:>11.0f}{early:>11.1f}{late:>12.1f}"
        f"{process.growth:>8.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=1_000, help="pushes per second")
    parser.add_argument("--command", choices=("ingest", "run"), default="ingest")
    arguments = parser.parse_args()
    plan = Plan(seconds=arguments.minutes * 60, rate=arguments.rate, command=arguments.command)
    print(f"{head('soak')}; memory in MiB")
    row(*HEAD)
    with tempfile.TemporaryDirectory() as folder:
        report(soak(plan, Path(folder), show))


if __name__ == "__main__":
    main()
