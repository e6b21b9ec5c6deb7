"""A clock for a running host, controlled by the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.clock import MockClock
from odradek.waiting.clock import SystemClock

if TYPE_CHECKING:
    from odradek.testing.host_thread import HostThread

STEP_MS = 3_600_000
"""The longest step in one turn of the host's loop."""


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
        """Advance the time. All tasks due by then have run, in order, when this returns.

        May be called from any thread. A day takes half a second, because many tasks run every few seconds.

        Raises:
            RuntimeError: No host uses this clock, or the host has stopped.
            ValueError: ``elapsed_ms`` is negative.
        """
        if elapsed_ms < 0:
            raise ValueError(f"time cannot go back: advance({elapsed_ms})")
        if self.thread is None:
            raise RuntimeError("no host uses this clock: start one with odradek.testing.host(clock=...)")
        call, advance = self.thread.call, self.mock.advance
        for _ in range(elapsed_ms // STEP_MS):
            call(lambda: advance(STEP_MS))
        call(lambda: advance(elapsed_ms % STEP_MS))
