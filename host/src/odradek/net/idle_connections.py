"""Closing of connections that were idle for too long."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.net.listener import Listener
from odradek.waiting.clock import Clock, Timer

IDLE_SWEEPS = 10
"""Checks for idle connections per ``connections.max.idle.ms``."""


def close_idle(listeners: Sequence[Listener], max_idle_ms: int, clock: Clock, timer: Timer) -> None:
    """Close connections that were idle for ``max_idle_ms``, now and at regular intervals."""
    now_ms = clock.monotonic_ms()
    for listener in listeners:
        listener.close_idle(now_ms, max_idle_ms)
    next_ms = now_ms + max(max_idle_ms // IDLE_SWEEPS, 100)
    timer.schedule(next_ms, lambda: close_idle(listeners, max_idle_ms, clock, timer))
