"""A `Timer` on an event loop: one pending wake-up, for the earliest deadline."""

from __future__ import annotations

import asyncio
import logging

from odradek.waiting.clock import Clock, Timer

log = logging.getLogger(__name__)

MOST_AT_ONCE = 64
"""Actions that run before the loop serves its sockets again. Most take microseconds; answering a long poll
takes tens of microseconds."""
STOOD_STILL_MS = 1_000
"""A wake-up that comes so late means that the loop stood still, as a rule because the process was suspended:
by a signal, or with its machine."""
CATCH_UP_MS = 500
"""After that, sockets are served for so long before deadlines count: heartbeats that clients sent in time
wait there, and would otherwise be read after the sessions of all members have ended."""


class LoopTimer(Timer):
    """Runs actions when they are due, from `start` to `stop`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.loop: asyncio.AbstractEventLoop
        self.handle: asyncio.TimerHandle | None = None
        self.due_ms = 0
        """The time of the next wake-up."""
        self.running = self.catching_up = False

    def start(self) -> None:
        """Run what is due, and then everything in time, on the loop of the caller."""
        self.loop = asyncio.get_running_loop()
        self.due_ms = self.clock.monotonic_ms()
        self.running = True
        self.run()

    def wake_at(self, deadline_ms: int) -> None:
        """Wake up at a new earliest deadline."""
        if self.running and not self.catching_up:
            self.sleep(max(deadline_ms - self.clock.monotonic_ms(), 0))

    def sleep(self, delay_ms: int) -> None:
        """Wake up after this time, and not before."""
        if self.handle is not None:
            self.handle.cancel()
        self.due_ms = self.clock.monotonic_ms() + delay_ms
        self.handle = self.loop.call_later(delay_ms / 1000, self.run)

    def run(self) -> None:
        """Run due actions, at most `MOST_AT_ONCE`, then sleep until the next deadline."""
        now_ms = self.clock.monotonic_ms()
        if not self.catching_up and now_ms - self.due_ms >= STOOD_STILL_MS:
            log.warning("the event loop stood still; requests that waited are read before deadlines count",
                        extra={"late_ms": now_ms - self.due_ms})  # fmt: skip
            self.catching_up = True
            self.sleep(CATCH_UP_MS)
            return
        self.catching_up = False
        try:
            self.run_due(now_ms, MOST_AT_ONCE)
        except Exception:
            log.exception("a timed action failed")
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is not None:
            self.wake_at(deadline_ms)

    def stop(self) -> None:
        """Cancel the wake-up and accept no further ones."""
        self.running = False
        if self.handle is not None:
            self.handle.cancel()
