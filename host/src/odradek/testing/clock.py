"""A clock that advances only when a test advances it."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.clock import Timer


@dataclass(slots=True)
class MockClock:
    """A clock, and the timer that it drives."""

    time_ms: int = 1_700_000_000_000
    """Epoch milliseconds. The checks of KIP-714 need a wall clock far from zero."""
    timer: Timer = field(default_factory=Timer)

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ns(self) -> int:
        return self.time_ms * 1_000_000

    def advance(self, elapsed_ms: int) -> None:
        """Advance the time. Tasks run in the order of their deadlines, each with the time of its deadline."""
        end_ms = self.time_ms + elapsed_ms
        while (deadline_ms := self.timer.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.time_ms = max(self.time_ms, deadline_ms)
            self.timer.run_due(self.time_ms)
        self.time_ms = end_ms
