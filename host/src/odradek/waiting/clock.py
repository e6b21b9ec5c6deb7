"""Time for all code below the floor of processes: a clock to read and a timer to wait with.

Wall time is for timestamps that are stored, sent, or compared with such timestamps. Everything else,
deadlines and intervals alike, uses the monotonic clock: the wall clock may be set back or forward at any
moment. Nothing here reads either except `SystemClock`. The timer never sleeps: its owner asks for the next
deadline, waits by its own means (an event loop, or a test that sets the time) and runs the tasks that are
due.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

COMPACT_FROM = 64
"""A heap with no more entries than this is never compacted."""


class Clock(Protocol):
    """Wall time, and a monotonic clock for deadlines, intervals and durations."""

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch, for timestamps only: it jumps when the clock is set."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment. Never goes back; use it for deadlines and intervals."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since an arbitrary moment. Never goes back; use it to measure durations."""


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    monotonic_ns = staticmethod(time.monotonic_ns)


@dataclass(slots=True, eq=False)
class TimerTask:
    """One action at one deadline on the monotonic clock; live until it has run or was cancelled."""

    timer: Timer
    deadline_ms: int
    action: Callable[[], None] | None

    def cancel(self) -> None:
        """Drop the action. Does nothing if it has already run."""
        if self.action is not None:
            self.action = None
            self.timer.cancelled()

    def postpone(self, deadline_ms: int) -> None:
        """Move the deadline to a later time. The heap does not change: `Timer.run_due` re-queues the task."""
        self.deadline_ms = deadline_ms


@dataclass(slots=True, eq=False)
class Timer:
    """Actions waiting for their deadlines, in order; after Kafka's SystemTimer, without its thread."""

    heap: list[tuple[int, int, TimerTask]] = field(default_factory=list)
    live: int = 0
    serial: count[int] = field(default_factory=count)

    def schedule(self, deadline_ms: int, action: Callable[[], None]) -> TimerTask:
        """Run ``action`` once `Clock.monotonic_ms` reaches ``deadline_ms``."""
        task = TimerTask(self, deadline_ms, action)
        earliest = not self.heap or deadline_ms < self.heap[0][0]
        heapq.heappush(self.heap, (deadline_ms, next(self.serial), task))
        self.live += 1
        if earliest:
            self.wake_at(deadline_ms)
        return task

    def wake_at(self, deadline_ms: int) -> None:
        """A deadline has become the earliest; a timer that waits by itself wakes up by then."""

    def cancelled(self) -> None:
        """Account for a cancelled task. The heap is compacted once most entries are dead, so that short-lived
        clients do not make it grow.
        """
        self.live -= 1
        if len(self.heap) > COMPACT_FROM and self.live * 2 < len(self.heap):
            self.heap = [entry for entry in self.heap if entry[2].action is not None]
            heapq.heapify(self.heap)

    def run_due(self, now_ms: int, most: int = sys.maxsize) -> int:
        """Run up to ``most`` tasks whose deadlines have passed and return how many ran. An action may
        schedule more tasks.
        """
        ran = 0
        while ran < most and self.heap and self.heap[0][0] <= now_ms:
            task = heapq.heappop(self.heap)[2]
            if task.action is None:
                continue
            if task.deadline_ms > now_ms:
                heapq.heappush(self.heap, (task.deadline_ms, next(self.serial), task))
                continue
            action, task.action = task.action, None
            self.live -= 1
            ran += 1
            action()
        return ran

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline; None if no task waits. Too early if that task was postponed."""
        while self.heap and self.heap[0][2].action is None:
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else None

    def __len__(self) -> int:
        return self.live
