"""How far ingest is, for whoever watches: a bar on a terminal, lines elsewhere.

What is shown comes from the tables and the topic; the query itself is not asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from odradek_spark.ingest.query import IngestSettings
from odradek_spark.ingest.status import batches_since, version
from odradek_spark.source.offsets import Offsets, backlog
from odradek_spark.source.options import read_options
from odradek_spark.source.topic import TopicError, TopicReader
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import PUSHES

MINUTE_S, HOUR_S = 60, 3600


@dataclass(frozen=True, slots=True)
class Reached:
    """What came since the start, and what waits."""

    batches: int
    pushes: int
    points: int
    dead_letters: int
    waiting: int | None
    """Records of the topic that are not in yet; None if the broker does not say."""
    elapsed_s: float

    @property
    def records(self) -> int:
        """Records of the topic that are in."""
        return self.pushes + self.dead_letters

    @property
    def points_per_s(self) -> float:
        """The mean since the start."""
        return self.points / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Until nothing waits, if it goes on like that."""
        if self.waiting is None or not self.records or self.elapsed_s <= 0:
            return None
        return self.waiting * self.elapsed_s / self.records

    def line(self) -> str:
        """All of it in one line."""
        total = "" if self.waiting is None else f" of {self.records + self.waiting:,}"
        said = f"{self.records:,}{total} pushes, {self.points:,} points, {self.points_per_s:,.0f} points/s"
        if self.dead_letters:
            said += f", {self.dead_letters:,} dead letters"
        if self.waiting and self.left_s is not None:
            said += f", {duration(self.left_s)} left"
        return said


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    whole = round(seconds)
    if whole >= HOUR_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S} min"
    if whole >= MINUTE_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S} s"
    return f"{whole} s"


class IngestProgress:
    """Give it to `run_ingest` as ``watch``, inside ``with``.

    Args:
        settings: Of the ingest.
        out: Where to show it.
        now_s: A clock that only goes forward.
    """

    def __init__(
        self, settings: IngestSettings, out: TextIO, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings, self.out, self.now_s = settings, out, now_s
        self.dataset = Dataset(settings.dataset)
        self.first_version = self.seen_version = version(settings.dataset)
        self.start_s = now_s()
        self.topic: TopicReader | None = None
        self.bar: Progress | None = None

    def __enter__(self) -> Self:
        if self.out.isatty():
            columns = (BarColumn(), TextColumn("{task.description}"))
            self.bar = Progress(*columns, console=Console(file=self.out), transient=True)
            self.bar.add_task("waiting for the first batch", total=None)
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self.topic is not None:
            self.topic.close()

    def __call__(self) -> None:
        """Look whether a batch came, and show it."""
        at = version(self.settings.dataset)
        if at == self.seen_version:
            return
        self.seen_version = at
        reached = self.reached()
        if not reached.batches:
            return
        if self.bar is None:
            print(reached.line(), file=self.out, flush=True)
            return
        total = None if reached.waiting is None else reached.records + reached.waiting
        self.bar.update(
            self.bar.task_ids[0], total=total, completed=reached.records, description=reached.line()
        )

    def reached(self) -> Reached:
        """Where it is now."""
        came = batches_since(self.settings.dataset, self.first_version)
        return Reached(
            came.batches,
            came.pushes,
            came.points,
            came.dead_letters,
            self.waiting(),
            self.now_s() - self.start_s,
        )

    def waiting(self) -> int | None:
        """Records that are in the topic and not in the tables."""
        with suppress(TopicError):
            if self.topic is None:
                self.topic = TopicReader(read_options(self.settings.options()))
            ends = self.topic.watermarks(self.topic.partitions())
            return backlog(self.done({part: first for part, (first, _) in ends.items()}), latest(ends))
        return None

    def done(self, first: Offsets) -> Offsets:
        """Up to where the tables have each partition."""
        return first | self.dataset.source_offsets(PUSHES, self.settings.topic, list(first))


def latest(marks: dict[int, tuple[int, int]]) -> Offsets:
    return {part: end for part, (_, end) in marks.items()}
