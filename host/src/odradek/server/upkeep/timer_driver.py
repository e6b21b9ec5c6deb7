"""Runs a `Timer` on an event loop: one pending wake-up, for the earliest deadline."""

from __future__ import annotations

import asyncio
import logging

from odradek.clock import Clock, Timer

log = logging.getLogger(__name__)

MOST_AT_ONCE = 64
"""Actions that run before the loop looks at its sockets again. Most take microseconds, an answer to a long
poll takes some tens."""


class TimerDriver:
    """Wakes up when something is due."""

    def __init__(self, timer: Timer, clock: Clock) -> None:
        self.timer = timer
        self.clock = clock
        self.loop = asyncio.get_running_loop()
        self.handle: asyncio.TimerHandle | None = None
        timer.wake = self.wake_at
        self.run()

    def wake_at(self, deadline_ms: int) -> None:
        """A deadline became the earliest."""
        if self.handle is not None:
            self.handle.cancel()
        delay_s = max(deadline_ms - self.clock.now_ms(), 0) / 1000
        self.handle = self.loop.call_later(delay_s, self.run)

    def run(self) -> None:
        """Run what is due, or a portion of it, and sleep until the next deadline."""
        try:
            self.timer.run_due(self.clock.now_ms(), MOST_AT_ONCE)
        except Exception:
            log.exception("a timed action failed")
        deadline_ms = self.timer.next_deadline_ms()
        if deadline_ms is not None:
            self.wake_at(deadline_ms)

    def stop(self) -> None:
        """Never wake up again."""
        self.timer.wake = None
        if self.handle is not None:
            self.handle.cancel()
