"""A clock on which all work takes time, so that long requests run in turns."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.testing.clock import MockClock


@dataclass(slots=True)
class TickingClock(MockClock):
    """A clock that advances at each reading of `monotonic_ns`: a step costs that much.

    A turn of requests therefore has ten steps. `monotonic_ms` advances only with `advance`.
    """

    looks_ns: int = 0
    tick_ns: int = 50_000

    def monotonic_ns(self) -> int:
        self.looks_ns += self.tick_ns
        return self.looks_ns

    def one_turn(self) -> None:
        """Run one turn of what is due now."""
        assert self.timer.run_due(self.monotonic_ms(), 1) == 1
