"""Answers the probes of an orchestrator: is the process alive, and should it get clients?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from threading import Event
from typing import Final

LOOP_TIMEOUT_S: Final = 5.0
"""The loop answers within milliseconds, on a bad day within a second. Probes should wait longer than this."""
Probe = Callable[[], str | None]
"""Returns why the process fails a check, None if it passes; called on a thread of its own."""


class LoopProbe:
    """Asks the event loop that runs now for a sign of life. It costs nothing while no probe asks.

    Args:
        timeout_s: How long to wait for the answer.
    """

    def __init__(self, timeout_s: float = LOOP_TIMEOUT_S) -> None:
        self.loop = asyncio.get_running_loop()
        self.timeout_s = timeout_s

    def problem(self) -> str | None:
        """Why the loop does not count as alive; None if it answers in time. Not called on the loop itself."""
        answered = Event()
        try:
            self.loop.call_soon_threadsafe(answered.set)
        except RuntimeError:
            return "the event loop is closed"
        in_time = answered.wait(self.timeout_s)
        return None if in_time else f"the event loop has not answered for {self.timeout_s:g} s"


def probes(is_alive: Probe, is_ready: Probe) -> Mapping[str, Probe]:
    """The probes by path. A process that is not alive is not ready."""
    return {"/healthz": is_alive, "/readyz": lambda: is_alive() or is_ready()}
