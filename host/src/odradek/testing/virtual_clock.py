"""The time of a running host, in the hand of its test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.clock import SystemClock
from odradek.testing.clock import MockClock

if TYPE_CHECKING:
    from odradek.testing.host_thread import HostThread

STEP_MS = 3_600_000
"""What passes in one turn of the host's loop."""


class VirtualClock:
    """A clock for one host: it stands still until `advance`.

    How long something takes is measured by the machine's clock still: request quotas count that.
    Clients have a clock of their own, so they push when they like; the host thinks that no time has passed.
    """

    monotonic_ns = staticmethod(SystemClock.monotonic_ns)

    def __init__(self) -> None:
        self.mock = MockClock()
        self.thread: HostThread | None = None

    def now_ms(self) -> int:
        """Epoch milliseconds, as the host sees them."""
        return self.mock.time_ms

    def drive(self, thread: HostThread) -> None:
        """Be the time of a host that is about to start.

        Raises:
            RuntimeError: It is that of another host.
        """
        if self.thread is not None:
            raise RuntimeError("a virtual clock belongs to one host: make another one")
        self.thread = thread
        self.mock.timer = thread.host.timer

    def advance(self, elapsed_ms: int) -> None:
        """Let time pass; what is due in it has been done, in order, when this returns. From any thread.

        A day takes half a second: much of a host is due every few seconds.

        Raises:
            RuntimeError: No host has this clock, or it is stopped.
            ValueError: Time would go back.
        """
        if elapsed_ms < 0:
            raise ValueError(f"time does not go back: advance({elapsed_ms})")
        if self.thread is None:
            raise RuntimeError("no host has this clock: start one with odradek.testing.host(clock=...)")
        call, advance = self.thread.call, self.mock.advance
        for _ in range(elapsed_ms // STEP_MS):
            call(lambda: advance(STEP_MS))
        call(lambda: advance(elapsed_ms % STEP_MS))
