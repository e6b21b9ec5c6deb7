"""Run a host, clients and the pipeline for a while; report their memory and the pushes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from process_memory import MemoryWatch, ProcessMemory, trees
from steady_pushes import SUBSCRIPTION_MS, SteadyPushes

from odradek_spark.ingest.progress import last_batch
from odradek_spark.source.options import TELEMETRY_TOPIC
from odradek_tables.dataset import Dataset
from odradek_tables.query.reader import Reader
from odradek_tables.schemas import PUSHES
from support.hosts import serving

PARTITIONS = 2
HOST = {
    "subscriptions.all.metrics": "*",
    "subscriptions.all.interval.ms": SUBSCRIPTION_MS,
    "telemetry.durability": "log",
    "telemetry.lag": "none",
    "telemetry.topic.partitions": PARTITIONS,
    "telemetry.retention.bytes": 1 << 30,
    "log.segment.bytes": 64 << 20,
    "log.retention.check.interval.ms": 10_000,
}
LIVES = 8
"""A client instance lives for this part of the time."""
FIRST_BATCH_S = 240.0
DRAIN_S = 300.0
STOP_S = 60.0
POLL_S = 0.5
MINUTE_S = 60.0
LATE_PROCESS = 1 / 3
"""A process that existed for a smaller part of the time is not long-lived."""
COUNTS = """
    SELECT count(*), count(DISTINCT (src_partition, src_offset)), coalesce(sum(points), 0),
        (SELECT count(*) FROM points), (SELECT count(*) FROM dead_letter)
    FROM pushes
"""


class SoakFailed(Exception):
    """The pipeline ended or got stuck; the message has its last output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The load and its duration."""

    seconds: float
    """From the first batch on."""
    rate: int
    command: str = "ingest"
    """``ingest``, or ``run`` for ingest and the jobs."""
    trigger_s: float = 10.0
    sample_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """The state at one moment; pushes from the start, bytes by role."""

    at_s: float
    sent: int
    accepted: int
    refused: int
    in_table: int
    memory: dict[str, int]

    @property
    def lag(self) -> int:
        """Pushes that were accepted and are in no table yet."""
        return self.accepted - self.in_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    """The result of a run."""

    processes: list[ProcessMemory]
    """The long-lived processes."""
    seconds: float
    instances: int
    broken: int
    refused: dict[int, int]
    in_time: int
    """Pushes that were accepted between the first batch and the end."""
    last: Minute
    """The time at which the clients stopped."""
    drained_s: float
    """The time after which every push was in the tables."""
    sent: int
    accepted: int
    in_topic: int
    in_table: int
    distinct: int
    """By partition and offset."""
    points: int
    points_announced: int
    """The values in the rows of pushes."""
    dead_letters: int


@dataclass(slots=True)
class Soak:
    """A run in progress."""

    plan: Plan
    bootstrap: str
    dataset: Dataset
    pipeline: subprocess.Popen[bytes]
    log: Path
    watch: MemoryWatch
    pushes: SteadyPushes
    say: Callable[[Minute], object]

    async def measure(self) -> tuple[int, Minute, float]:
        """Pushes accepted in time, the state when the clients stopped, and seconds until every push was in
        the tables.
        """
        pushing = asyncio.create_task(self.pushes.run())
        try:
            await self.until(lambda: last_batch(self.dataset.root) is not None, FIRST_BATCH_S)
            before = self.pushes.accepted
            last = await self.sampled()
        finally:
            self.pushes.stopping.set()
            await pushing
        stopped_s, end = time.monotonic(), self.in_topic()
        await self.until(lambda: self.in_table() >= end, DRAIN_S)
        return last.accepted - before, last, time.monotonic() - stopped_s

    async def sampled(self) -> Minute:
        """Sample the memory until the time is over."""
        begin_s = time.monotonic()
        minute_s = MINUTE_S
        while (at_s := time.monotonic() - begin_s) < self.plan.seconds:
            self.check()
            await asyncio.to_thread(self.watch.sample, at_s)
            if at_s >= minute_s:
                minute_s += MINUTE_S
                self.say(await self.minute(at_s))
            await asyncio.sleep(self.plan.sample_s)
        last = await self.minute(at_s)
        self.say(last)
        return last

    async def minute(self, at_s: float) -> Minute:
        in_table = await asyncio.to_thread(self.in_table)
        pushes = self.pushes
        return Minute(
            at_s=at_s,
            sent=pushes.sent,
            accepted=pushes.accepted,
            refused=pushes.refused.total(),
            in_table=in_table,
            memory=self.watch.totals(),
        )

    async def until(self, true: Callable[[], bool], patience_s: float) -> None:
        """Wait for a condition.

        Raises:
            SoakFailed: It did not become true in time.
        """
        end_s = time.monotonic() + patience_s
        while not await asyncio.to_thread(true):
            self.check()
            if time.monotonic() > end_s:
                raise SoakFailed(f"nothing more came within {patience_s:g} s: {self.last_words()}")
            await asyncio.sleep(POLL_S)

    def check(self) -> None:
        """Whether the pipeline is running."""
        if self.pipeline.poll() is not None:
            raise SoakFailed(f"the pipeline ended: {self.last_words()}")

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def in_table(self) -> int:
        """Pushes in the table: the topic starts at 0 and has no gaps."""
        return sum(self.dataset.source_offsets(PUSHES, TELEMETRY_TOPIC, range(PARTITIONS)).values())

    def in_topic(self) -> int:
        """The number of pushes that the host has written."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "soak", "enable.metrics.push": False}
        )
        try:
            return sum(
                consumer.get_watermark_offsets(TopicPartition(TELEMETRY_TOPIC, partition), timeout=30)[1]
                for partition in range(PARTITIONS)
            )
        finally:
            consumer.close()


def soak(plan: Plan, folder: Path, say: Callable[[Minute], object] = lambda minute: None) -> Soaked:
    """Run everything for a while.

    Args:
        plan: The load and its duration.
        folder: For the data of the host, the dataset and the pipeline's log; must be empty.
        say: Called with the state, every minute and at the end.

    Raises:
        SoakFailed: The pipeline ended, or makes no progress.
    """
    dataset, log = Dataset(str(folder / "tables")), folder / "pipeline.log"
    settings = [part for key, value in HOST.items() for part in ("--set", f"{key}={value}")]
    with (
        serving(folder / "host", *settings) as serve,
        piping(plan, serve.bootstrap, dataset.root, log) as pipeline,
    ):
        watch = MemoryWatch((serve.process.pid, pipeline.pid))
        pushes = SteadyPushes(serve.bootstrap, plan.rate, max(plan.seconds / LIVES, 10.0))
        under_way = Soak(plan, serve.bootstrap, dataset, pipeline, log, watch, pushes, say)
        in_time, last, drained_s = asyncio.run(under_way.measure())
        in_topic = under_way.in_topic()
    return soaked(under_way, in_time, last, drained_s, in_topic)


def soaked(under_way: Soak, in_time: int, last: Minute, drained_s: float, in_topic: int) -> Soaked:
    """The report at the end."""
    reader = Reader(under_way.dataset.root)
    (row,) = reader.ask(COUNTS).to_pylist()
    reader.close()
    in_table, distinct, announced, points, dead_letters = map(int, row.values())
    pushes, seconds = under_way.pushes, under_way.plan.seconds
    return Soaked(
        processes=under_way.watch.long_lived(seconds * LATE_PROCESS),
        seconds=seconds,
        instances=pushes.instances,
        broken=pushes.broken,
        refused=dict(pushes.refused),
        in_time=in_time,
        last=last,
        drained_s=drained_s,
        sent=pushes.sent,
        accepted=pushes.accepted,
        in_topic=in_topic,
        in_table=in_table,
        distinct=distinct,
        points=points,
        points_announced=announced,
        dead_letters=dead_letters,
    )


@contextmanager
def piping(plan: Plan, bootstrap: str, dataset: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The pipeline as a user starts it; it and its descendants end with the block."""
    command = [sys.executable, "-m", "odradek", "spark", plan.command, "--bootstrap-server", bootstrap]
    command += ["--dataset", dataset, "--trigger-interval-ms", f"{plan.trigger_s * 1000:.0f}"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            yield process
        finally:
            family = [seen.pid for seen, _ in trees((process.pid,))]
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            end(family)
            process.wait()


def end(family: list[int]) -> None:
    """Kill the remaining processes."""
    alive = {seen.pid for seen, _ in trees(family)}
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
