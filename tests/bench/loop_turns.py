"""Measures the turns of an asyncio loop: the work between two waits for events."""

from __future__ import annotations

import asyncio
import time
from typing import Any


class LoopTurns:
    """The longest turn of a loop since `restart`, in CPU time of its thread: other programs do not count."""

    def __init__(self) -> None:
        self.longest_ns = 0
        self.total_ns = 0
        self.turns = 0
        self.began_ns: int | None = None

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Measure a loop from now on. Call on the loop; it must be asyncio's own, not uvloop's."""
        selector = loop._selector  # type: ignore[attr-defined]  # asyncio has no public hook
        wait = selector.select

        def select(timeout: float | None = None) -> Any:
            self.end()
            try:
                return wait(timeout)
            finally:
                self.began_ns = time.thread_time_ns()

        selector.select = select

    def end(self) -> None:
        """Count the turn that ends here."""
        if self.began_ns is not None:
            spent_ns = time.thread_time_ns() - self.began_ns
            self.longest_ns = max(self.longest_ns, spent_ns)
            self.total_ns += spent_ns
            self.turns += 1

    def restart(self) -> None:
        """Forget everything up to now."""
        self.longest_ns = self.total_ns = self.turns = 0
