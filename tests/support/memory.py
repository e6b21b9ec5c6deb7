"""The memory of a host in a test."""

from __future__ import annotations

from odradek.net.held_bytes import Memory, MemorySettings
from odradek.testing.clock import MockClock

AMPLE = 1 << 40


def memory_of(
    clock: MockClock,
    requests: int = AMPLE,
    answers: int = AMPLE,
    max_request_bytes: int = 1_000_000,
    stalled_ms: int = 10_000,
) -> Memory:
    """A memory with these limits."""
    settings = MemorySettings(request_bytes=requests, response_bytes=answers, stalled_ms=stalled_ms)
    return Memory(settings, max_request_bytes, clock, clock.timer)
