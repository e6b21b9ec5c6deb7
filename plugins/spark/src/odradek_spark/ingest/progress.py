"""Shows the progress of an ingest: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from odradek_spark.ingest.status import Totals

MINUTE_S, HOUR_S = 60, 3600
LINE_S = 10.0
"""Shortest time between two lines."""
SAMPLES = 10
"""The rate is computed since this many states ago."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The totals since the start, and the waiting records."""

    batches: int
    pushes: int
    points: int
    dead_letters: int
    waiting: int | None
    """Records of the topic that are not in the tables yet; None if the broker does not answer."""
    elapsed_s: float
    before: Reached | None = None
    """An earlier state, from which the rates are computed; None for the start."""

    @property
    def records(self) -> int:
        """Records of the topic that are in the tables."""
        return self.pushes + self.dead_letters

    @property
    def points_per_s(self) -> float:
        """The mean since `before`."""
        return self.rate(self.points - (self.before.points if self.before else 0))

    @property
    def left_s(self) -> float | None:
        """Estimated seconds until no record waits; None if unknown."""
        records_per_s = self.rate(self.records - (self.before.records if self.before else 0))
        return self.waiting / records_per_s if self.waiting is not None and records_per_s > 0 else None

    def rate(self, came: int) -> float:
        """The rate per second of a total since `before`."""
        passed_s = self.elapsed_s - (self.before.elapsed_s if self.before else 0.0)
        return came / passed_s if passed_s > 0 else 0.0

    def line(self) -> str:
        """The state in one line."""
        total = "" if self.waiting is None else f" of {self.records + self.waiting:,}"
        said = f"{self.records:,}{total} pushes, {self.points:,} points, {self.points_per_s:,.0f} points/s"
        if self.dead_letters:
            said += f", {self.dead_letters:,} dead letters"
        if self.waiting and self.left_s is not None:
            said += f", {duration(self.left_s)} left"
        return said


def duration(seconds: float) -> str:
    """A duration for people."""
    whole = round(seconds)
    if whole >= HOUR_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S} min"
    if whole >= MINUTE_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S} s"
    return f"{whole} s"


class Shown:
    """Shows states inside ``with``.

    Args:
        out: The stream to write to.
        line_s: Minimum seconds between two lines; the last state is always shown.
        now_s: A monotonic clock.
    """

    def __init__(
        self, out: TextIO, line_s: float = LINE_S, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.out, self.line_s, self.now_s = out, line_s, now_s
        self.start_s = now_s()
        self.said_s = float("-inf")
        self.held: Reached | None = None
        """The last state, if no line has shown it yet."""
        self.states: deque[Reached] = deque([Reached(0, 0, 0, 0, None, 0.0)], maxlen=SAMPLES)
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
        if self.held is not None:
            self.say(self.held.line())

    def show(self, came: Totals, waiting: int | None) -> None:
        """Show a new state.

        Args:
            came: Totals since the start.
            waiting: Number of waiting records; None if unknown.
        """
        passed_s = self.now_s() - self.start_s
        now = Reached(came.batches, came.pushes, came.points, came.dead_letters, waiting, passed_s)
        reached = replace(now, before=self.states[0])
        self.states.append(now)
        if self.bar is not None:
            total = None if waiting is None else reached.records + waiting
            self.bar.update(
                self.bar.task_ids[0], total=total, completed=reached.records, description=reached.line()
            )
        elif passed_s - self.said_s >= self.line_s:
            self.said_s, self.held = passed_s, None
            self.say(reached.line())
        else:
            self.held = reached

    def say(self, line: str) -> None:
        """Print a line, above the bar."""
        whole = " ".join(line.split())
        if self.bar is not None and self.bar.live.is_started:
            self.bar.console.print(whole, markup=False, highlight=False, soft_wrap=True)
        else:
            print(whole, file=self.out, flush=True)
