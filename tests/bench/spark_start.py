"""The costs of Spark ingest that do not depend on the size of a batch: ``python -m bench.spark_start``.

*Start* is ``odradek spark ingest --once`` with twenty pushes in the topic, from the start of the process to
its end, by stage. *plain* starts each Python worker as Spark does by itself, and *no archive* also starts the
JVM without its class-data archive; the ways take turns. A run that is not counted writes the archive.

*Trigger* is a batch of a running ``odradek spark ingest``: one with twenty pushes in two partitions, and one
without any.

CPU is that of the driver, its JVM and their Python workers. Linux only: it comes from ``/proc``. It needs
Java and the extra ``spark``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .comparison import Comparison, Goal, compared
from .harness import UnavailableError, head, tree_cpu_s

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins" / "spark" / "tests"))

STARTED_S = time.monotonic()
PUSHES, PARTITIONS = 20, 2
STAGES = (
    "imports",
    "topic and tables",
    "session",
    "plan of the batch",
    "tasks",
    "commits",
    "end of the query",
    "end of the session",
    "end of the JVM",
)
FORKED, PLAIN, NO_ARCHIVE = "odradek", "plain", "no archive"
WAYS = (FORKED, PLAIN, NO_ARCHIVE)
GOAL = 0.5
"""Of the CPU of a start without either."""
PATIENCE_S = 120.0


class Stages:
    """Wall time and CPU of this process and its descendants, by stage."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[float, float]] = {}
        self.before = STARTED_S, 0.0

    def end(self, stage: str) -> None:
        """A stage ends; the next one begins."""
        # a process whose parent does not wait for it takes its CPU along when it ends
        now = time.monotonic(), max(sum(tree_cpu_s(os.getpid()).values()), self.before[1])
        wall_s, cpu_s = self.found.get(stage, (0.0, 0.0))
        self.found[stage] = wall_s + now[0] - self.before[0], cpu_s + now[1] - self.before[1]
        self.before = now

    def around(self, function: Callable[..., Any], before: str, stage: str) -> Callable[..., Any]:
        """A function whose call is a stage."""

        def call(*arguments: Any) -> Any:
            self.end(before)
            try:
                return function(*arguments)
            finally:
                self.end(stage)

        return call


def one(bootstrap: str, folder: str, archive: str) -> None:
    """Ingest as ``odradek spark ingest --once`` does, and print the stages."""
    stages = Stages()
    from ingested import settings

    import odradek_spark.cli.main  # noqa: F401  what the command imports
    from odradek_spark.ingest import commit
    from odradek_spark.ingest.query import check_ingest
    from odradek_spark.ingest.run import run_ingest
    from odradek_spark.ingest.session import local_session

    stages.end("imports")
    given = settings(bootstrap, Path(folder))
    check_ingest(given)
    stages.end("topic and tables")
    session = local_session("bench", "local[2]", archive=Path(archive) if archive else None)
    stages.end("session")
    commit.collected = stages.around(commit.collected, "plan of the batch", "tasks")
    commit.commit_batch = stages.around(commit.commit_batch, "tasks", "commits")
    run_ingest(session, given, once=True)
    stages.end("end of the query")
    parts = tree_cpu_s(os.getpid())
    session.stop()
    stages.end("end of the session")
    gateway = session.sparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()  # it may write the archive
    stages.end("end of the JVM")
    print(json.dumps({"stages": stages.found, "parts": parts}), flush=True)


def started(way: str, bootstrap: str, folder: str, archive: str) -> dict[str, Any]:
    """One start, in another process."""
    environment = dict(os.environ)
    environment.pop("PYSPARK_PYTHON", None)
    if way != FORKED:  # another name of this Python, so that nothing is forked
        environment["PYSPARK_PYTHON"] = str(Path(sys.executable).parent) + f"/./{Path(sys.executable).name}"
    used = "" if way == NO_ARCHIVE else archive
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "bench.spark_start", "one", bootstrap, folder, used],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment,
        cwd=Path(__file__).parents[1],
    )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    found["stages"]["all"] = time.monotonic() - began_s, sum(cpu_s for _, cpu_s in found["stages"].values())
    return found


def report_starts(bootstrap: str, starts: int, ways: Sequence[str]) -> dict[str, float]:
    """Measure starts, the ways in turn, and print medians. Returns the CPU seconds of each way."""
    with tempfile.TemporaryDirectory(prefix="spark-start-") as folder:
        archive = f"{folder}/classes.jsa"
        started(FORKED, bootstrap, f"{folder}/first", archive)
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
        for number in range(starts):
            for way in ways:
                found[way].append(started(way, bootstrap, f"{folder}/{way}{number}", archive))
    print(f"\nstart, medians of {starts}: wall s, CPU s")
    print(f"{'':20}" + "".join(f"{way:>18}" for way in ways))
    for stage in (*STAGES, "all"):
        cells = []
        for way in ways:
            pairs = [each["stages"].get(stage, (0.0, 0.0)) for each in found[way]]
            wall_s, cpu_s = (statistics.median(column) for column in zip(*pairs, strict=True))
            cells.append(f"{wall_s:10.2f}{cpu_s:8.2f}")
        print(f"{stage:20}" + "".join(cells))
    for part in ("driver", "JVM", "Python"):
        cells = [f"{statistics.median(each['parts'][part] for each in found[way]):18.2f}" for way in ways]
        print(f"{'CPU of ' + part:20}" + "".join(cells))
    return {way: statistics.median(sum(each["parts"].values()) for each in found[way]) for way in ways}


def report_triggers(bootstrap: str, triggers: int, fill: Callable[[], None]) -> None:
    """Measure triggers of one running ingest, and print their mean CPU."""
    with tempfile.TemporaryDirectory(prefix="spark-start-") as folder, ingesting(bootstrap, folder) as pid:
        log = Path(folder) / "data" / "pushes" / "_delta_log"

        def batch() -> None:
            before = len(list(log.glob("*.json")))
            fill()
            until(lambda: len(list(log.glob("*.json"))) > before)

        until(lambda: len(list(log.glob("*.json"))) > 1)
        for _ in range(triggers):  # the JVM compiles
            batch()
        print(f"\ntrigger, means of {triggers}: CPU ms")
        for name, step in (("with pushes", batch), ("empty", lambda: time.sleep(1.0))):
            before = tree_cpu_s(pid)
            for _ in range(triggers):
                step()
            after = tree_cpu_s(pid)
            costs = {part: (after[part] - before[part]) / triggers * 1000 for part in after}
            parts = ", ".join(f"{part} {cost:.0f}" for part, cost in costs.items())
            print(f"{name:12}{sum(costs.values()):8.0f}   {parts}", flush=True)


@contextmanager
def ingesting(bootstrap: str, folder: str) -> Iterator[int]:
    """A running ingest with a trigger a second; yields its process id."""
    options = ("--bootstrap-server", bootstrap, "--topic", "telemetry", "--dataset", f"{folder}/data")
    how = ("--master", "local[2]", "--trigger-interval-ms", "1000")
    running = subprocess.Popen(
        [sys.executable, "-m", "odradek", "spark", "ingest", *options, *how], stderr=subprocess.DEVNULL
    )
    try:
        yield running.pid
    finally:
        running.terminate()
        running.wait(PATIENCE_S)


def until(true: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > end_s:
            raise TimeoutError("in vain: see the output above")
        time.sleep(0.02)


def serve(done: Any, told: Any) -> None:
    """Run the host, in a process whose CPU is not counted."""
    import odradek.testing

    with odradek.testing.host() as host:
        host.topics.create("telemetry", PARTITIONS)
        told.send(host.bootstrap)
        done.wait()


@contextmanager
def filled() -> Iterator[tuple[str, Callable[[], None]]]:
    """A host whose topic has pushes; yields its address, and what adds more of them.

    Raises:
        UnavailableError: The extra ``spark`` or Java is missing.
    """
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        raise UnavailableError("no Java, or no pyspark")
    from spark_topics import fill, records

    done = multiprocessing.Event()
    told, tell = multiprocessing.Pipe()
    serving = multiprocessing.Process(target=serve, args=(done, tell), daemon=True)
    serving.start()
    bootstrap = told.recv()

    def add() -> None:
        fill(bootstrap, records(PUSHES, partitions=PARTITIONS))

    try:
        add()
        yield bootstrap, add
    finally:
        done.set()
        serving.join()


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    with filled() as (bootstrap, _):
        costs = report_starts(bootstrap, rounds, WAYS)
    goals = [Goal(peer=NO_ARCHIVE, most=GOAL)]
    yield from compared("spark, a start of ingest", "s", costs, [FORKED], goals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--triggers", type=int, default=15)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    arguments = parser.parse_args()
    print(head("spark_start"), file=sys.stderr)
    with filled() as (bootstrap, add):
        if arguments.starts:
            report_starts(bootstrap, arguments.starts, arguments.ways)
        if arguments.triggers:
            report_triggers(bootstrap, arguments.triggers, add)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        one(*sys.argv[2:])
    else:
        main()
