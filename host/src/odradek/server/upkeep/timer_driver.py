"""Runs a `Timer` on an event loop: one pending wake-up, for the earliest deadline."""

from __future__ import annotations

import asyncio
import logging

from odradek.clock import Clock, Timer

log = logging.getLogger(__name__)

MOST_AT_ONCE = 64
"""Actions that run before the loop serves its sockets again. Most take microseconds; answering a long poll
takes tens of microseconds."""


class TimerDriver:
    """Runs the actions of a timer when they are due."""

    def __init__(self, timer: Timer, clock: Clock) -> None:
        self.timer = timer
        self.clock = clock
        self.loop = asyncio.get_running_loop()
        self.handle: asyncio.TimerHandle | None = None
        timer.wake = self.wake_at
        self.run()

    def wake_at(self, deadline_ms: int) -> None:
        """Wake up at a new earliest deadline."""
        if self.handle is not None:
            self.handle.cancel()
        delay_s = max(deadline_ms - self.clock.monotonic_ms(), 0) / 1000
        self.handle = self.loop.call_later(delay_s, self.run)

    def run(self) -> None:
        """Run due actions, at most `MOST_AT_ONCE`, then sleep until the next deadline."""
        try:
            self.timer.run_due(self.clock.monotonic_ms(), MOST_AT_ONCE)
        except Exception:
            log.exception("a timed action failed")
        deadline_ms = self.timer.next_deadline_ms()
        if deadline_ms is not None:
            self.wake_at(deadline_ms)

    def stop(self) -> None:
        """Cancel the wake-up and accept no further ones."""
        self.timer.wake = None
        if self.handle is not None:
            self.handle.cancel()
