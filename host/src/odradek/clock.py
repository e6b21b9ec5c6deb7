"""Time, as everything below the server's floor sees it: a clock to read and a timer to wait with.

Nothing here reads the wall clock except `SystemClock`. The timer never sleeps: whoever owns it asks for the
next deadline, waits by its own means (an event loop, a test's hand) and runs what is due.
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
"""A heap of so few places is never cleared of dead ones."""


class Clock(Protocol):
    """Wall-clock time; the gates of KIP-714 compare epoch milliseconds."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since some moment, never going back: for measuring how long something took."""


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic_ns = staticmethod(time.monotonic_ns)


@dataclass(slots=True, eq=False)
class TimerTask:
    """One action at one deadline; alive until it ran or was cancelled."""

    timer: Timer
    deadline_ms: int
    action: Callable[[], None] | None

    def cancel(self) -> None:
        """Forget the action; harmless when it already ran."""
        if self.action is not None:
            self.action = None
            self.timer.cancelled()

    def postpone(self, deadline_ms: int) -> None:
        """Move the deadline to a later time. The heap is left alone: an early wake-up re-queues the task."""
        self.deadline_ms = deadline_ms


@dataclass(slots=True, eq=False)
class Timer:
    """Actions waiting for their deadlines, in order; after Kafka's SystemTimer, without its thread."""

    heap: list[tuple[int, int, TimerTask]] = field(default_factory=list)
    live: int = 0
    wake: Callable[[int], None] | None = None
    """Called with a deadline that became the earliest, so that the owner can wake up sooner."""
    serial: count[int] = field(default_factory=count)

    def schedule(self, deadline_ms: int, action: Callable[[], None]) -> TimerTask:
        """Run ``action`` once ``deadline_ms`` is reached."""
        task = TimerTask(self, deadline_ms, action)
        earliest = not self.heap or deadline_ms < self.heap[0][0]
        heapq.heappush(self.heap, (deadline_ms, next(self.serial), task))
        self.live += 1
        if earliest and self.wake is not None:
            self.wake(deadline_ms)
        return task

    def cancelled(self) -> None:
        """A task was cancelled. Its place in the heap is cleared once most places are dead, so that clients
        that come and go do not make the heap grow.
        """
        self.live -= 1
        if len(self.heap) > COMPACT_FROM and self.live * 2 < len(self.heap):
            self.heap = [entry for entry in self.heap if entry[2].action is not None]
            heapq.heapify(self.heap)

    def run_due(self, now_ms: int, most: int = sys.maxsize) -> int:
        """Run the tasks whose deadlines have passed, ``most`` at most; the number that ran. An action may
        schedule more.
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
        """When to look again; None when nothing waits. May be early for a task that was postponed."""
        while self.heap and self.heap[0][2].action is None:
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else None

    def __len__(self) -> int:
        return self.live
