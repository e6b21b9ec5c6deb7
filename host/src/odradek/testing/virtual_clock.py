"""A clock for a running host, controlled by the test."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from odradek.testing.clock import MockClock
from odradek.waiting.clock import SystemClock

if TYPE_CHECKING:
    from odradek.testing.host_thread import HostThread

STEP_MS = 3_600_000
"""The longest step between two looks for its timeout."""
WAIT_S = 0.0002
"""Between two looks at work on threads."""


class VirtualClock:
    """A clock for one host that stands still until `advance` is called.

    Durations are still measured by the machine's clock, for example the request time that request quotas
    count. Clients keep their own time: they push at their intervals while no time passes for the host.
    """

    monotonic_ns = staticmethod(SystemClock.monotonic_ns)

    def __init__(self) -> None:
        self.mock = MockClock()
        self.thread: HostThread | None = None

    def now_ms(self) -> int:
        """Epoch milliseconds, as the host sees them."""
        return self.mock.now_ms()

    def monotonic_ms(self) -> int:
        """The clock of the host's deadlines and intervals; it stands still too."""
        return self.mock.monotonic_ms()

    def drive(self, thread: HostThread) -> None:
        """Become the clock of a host that is about to start.

        Raises:
            RuntimeError: It is the clock of another host that runs.
        """
        if self.thread not in (None, thread) and self.thread.thread.is_alive():
            raise RuntimeError("a virtual clock belongs to one host: create another one")
        self.thread = thread
        self.mock.timer = thread.host.timer

    def advance(self, elapsed_ms: int) -> None:
        """Advance the time. All that is due by then has been done, in order, when this returns: also what
        takes files and turns of the loop, such as retention and compaction.

        May be called from any thread but the host's. A day takes seconds, because many tasks run every few
        seconds.

        Raises:
            RuntimeError: No host uses this clock, or the host has stopped.
            ValueError: ``elapsed_ms`` is negative.
        """
        if elapsed_ms < 0:
            raise ValueError(f"time cannot go back: advance({elapsed_ms})")
        if self.thread is None:
            raise RuntimeError("no host uses this clock: start one with odradek.testing.host(clock=...)")
        for _ in range(elapsed_ms // STEP_MS):
            self.thread.await_on_loop(partial(self.step, STEP_MS))
        self.thread.await_on_loop(partial(self.step, elapsed_ms % STEP_MS))

    async def step(self, elapsed_ms: int) -> None:
        """Advance the time, on the host's loop."""
        mock = self.mock
        end_ms = mock.time_ms + elapsed_ms
        await self.settle()
        while (deadline_ms := mock.timer.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            mock.advance(max(0, deadline_ms - mock.time_ms))
            await self.settle()
        mock.advance(end_ms - mock.time_ms)

    async def settle(self) -> None:
        """Do the work that is ready, and wait for that on threads."""
        assert self.thread is not None
        host = self.thread.host
        work = host.ground.log_work
        runners = (work.runner, work.flusher, host.ground.common.steps)
        while True:
            for runner in runners:
                while runner.ready:
                    runner.turn()
            if not any(each.unfinished for each in host.spine.threads):
                return
            await asyncio.sleep(WAIT_S)
