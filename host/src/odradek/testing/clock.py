"""A clock that advances only when a test advances it, and whose wall time jumps when a test sets it."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.waiting.clock import Timer


@dataclass(slots=True)
class MockClock:
    """A clock, and the timer that it drives."""

    time_ms: int = 10_000_000
    """The monotonic clock, far from wall time, so that a test fails where one is taken for the other."""
    ahead_ms: int = 1_699_990_000_000
    """How far the wall clock is ahead of the monotonic one."""
    timer: Timer = field(default_factory=Timer)

    def now_ms(self) -> int:
        return self.time_ms + self.ahead_ms

    def monotonic_ms(self) -> int:
        return self.time_ms

    def monotonic_ns(self) -> int:
        return self.time_ms * 1_000_000

    def jump(self, by_ms: int) -> None:
        """Set the wall clock forward, or back if ``by_ms`` is negative. No time passes."""
        self.ahead_ms += by_ms

    def advance(self, elapsed_ms: int) -> None:
        """Advance the time. Tasks run in the order of their deadlines, each with the time of its deadline."""
        end_ms = self.time_ms + elapsed_ms
        while (deadline_ms := self.timer.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.time_ms = max(self.time_ms, deadline_ms)
            self.timer.run_due(self.time_ms)
        self.time_ms = end_ms
