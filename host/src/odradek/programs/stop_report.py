"""The lines of a program that stops: an operator sees what it waits for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from odradek.process.loop_timer import LoopTimer
from odradek.waiting.clock import Clock, TimerTask

log = logging.getLogger("odradek")

EVERY_MS: Final = 5_000


class StopReport:
    """One line each `EVERY_MS` of a stop. Its timer is its own: that of the program stops earlier.

    Args:
        clock: The time.
        waits_for: Names the work that the stop waits for now.
    """

    def __init__(self, clock: Clock, waits_for: Callable[[], str]) -> None:
        self.clock, self.waits_for = clock, waits_for
        self.timer = LoopTimer(clock)
        self.began_ms = 0
        self.task: TimerTask

    def begin(self) -> None:
        """The stop begins. Call on the loop."""
        self.began_ms = self.clock.monotonic_ms()
        self.task = self.timer.schedule(self.began_ms + EVERY_MS, self.tell)
        self.timer.start()

    def tell(self) -> None:
        now_ms = self.clock.monotonic_ms()
        log.info(
            "still stopping",
            extra={"waits_for": self.waits_for(), "for_s": (now_ms - self.began_ms) // 1000},
        )
        self.task = self.timer.schedule(now_ms + EVERY_MS, self.tell)

    def look(self) -> None:
        """Tell what is due; for steps that keep the loop from running."""
        self.timer.run_due(self.clock.monotonic_ms())

    def end(self) -> None:
        """The program has stopped."""
        self.task.cancel()
        self.timer.stop()
