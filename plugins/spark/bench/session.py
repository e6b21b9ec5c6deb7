"""The start of a session, with and without the class-data archive: ``python plugins/spark/bench/session.py``.

Each start is a separate process, and the two ways take turns. *Ready* is from the import of PySpark to a
session with the source registered; *first job* is an additional Python task. CPU is that of the process and
its descendants. A start that is not counted writes the archive.
Linux only: CPU comes from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))

from ingest import tree_cpu_s  # type: ignore[import-not-found]

from bench.harness import head

STARTS = 5
ROWS = {"ready_s": "ready, s", "ready_cpu_s": "CPU of that", "job_s": "first job, s"}


def start(archive: str) -> None:
    """Start a session and print the time it took."""
    began_s = time.monotonic()
    from odradek_spark.ingest.session import local_session

    session = local_session("bench", "local[2]", archive=Path(archive) if archive else None)
    ready_s = time.monotonic()
    cpu_s = sum(tree_cpu_s(os.getpid()).values())
    session.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()
    done_s = time.monotonic()
    print(json.dumps({"ready_s": ready_s - began_s, "ready_cpu_s": cpu_s, "job_s": done_s - ready_s}))
    session.stop()


def measured(archive: str) -> dict[str, float]:
    """Measure one start in another process."""
    command = [sys.executable, __file__, "--archive", archive, "--one"]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, float] = json.loads(out.strip().splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--archive", default="", help=argparse.SUPPRESS)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        start(arguments.archive)
        return
    print(head("session"))
    with tempfile.TemporaryDirectory() as folder:
        archive = f"{folder}/classes.jsa"
        measured(archive)
        ways: dict[str, list[dict[str, float]]] = {archive: [], "": []}
        for _ in range(arguments.starts):
            for way, found in ways.items():
                found.append(measured(way))
    medians = {
        way: {key: statistics.median(each[key] for each in found) for key in ROWS}
        for way, found in ways.items()
    }
    print(f"{f'medians of {arguments.starts}':16}{'archive':>10}{'none':>10}{'ratio':>8}")
    for key, name in ROWS.items():
        with_it, without = medians[archive][key], medians[""][key]
        print(f"{name:16}{with_it:10.2f}{without:10.2f}{without / with_it:8.2f}")


if __name__ == "__main__":
    main()
