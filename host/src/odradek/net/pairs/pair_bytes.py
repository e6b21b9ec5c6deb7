"""The memory of all pairs together: bytes that one end of a pair has read and the other one has not sent.

An end is counted from the time its peer stops taking bytes, or a large frame is held back. Above the limit,
the ends that hold the most are not read; one of them is, the one whose frame misses least, because a frame
that stays incomplete would never leave.
"""

from __future__ import annotations

from odradek.gateway.pair_state import Pause
from odradek.net.held_bytes import EXTRA_BYTES, AnswerBytes, Holder, MemorySettings, limit_or_default
from odradek.waiting.clock import Clock, Timer


class PairBytes(AnswerBytes):
    """The memory of all pairs together."""

    what = "pairs"
    reason = Pause.MEMORY

    def __init__(
        self, limit_bytes: int, settings: MemorySettings, clock: Clock, timer: Timer, frame_bytes: int = 0
    ) -> None:
        """Bound the memory of pairs.

        Args:
            limit_bytes: The limit; not positive for the default.
            settings: For the time that one pair may keep the others waiting.
            clock: The time.
            timer: Runs checks.
            frame_bytes: The largest frame that is held back: it must fit in even if the limit is smaller.
        """
        limit = limit_or_default(limit_bytes)
        most = limit + max(min(limit // 2, EXTRA_BYTES), frame_bytes)
        super().__init__(limit, limit, most, settings.stalled_ms, clock, timer)

    def hold(self, holder: Holder, size_bytes: int) -> None:
        if holder is self.awaited and size_bytes > self.held.get(holder, 0):
            self.awaited_since_ms = self.clock.monotonic_ms()  # more of its frame has come
        super().hold(holder, size_bytes)

    def await_one(self, now_ms: int) -> None:
        if self.awaited is not None and self.is_stalled(now_ms):
            self.give_up(self.awaited)
        if self.awaited is None:
            incomplete = [each for each in self.paused if each.missing_bytes]
            least = min(incomplete, key=lambda each: each.missing_bytes, default=None)
            self.awaited = least or next(iter(self.largest_first()), None)
            self.awaited_since_ms = now_ms
            if self.awaited is not None:
                self.read(self.awaited)
