"""The memory of all pairs together: bytes that one end of a pair has read and the other one has not sent.

An end is counted from the time its peer stops taking bytes, or a large frame is held back. Above the limit,
the ends that hold the most are not read; one of them is, the one whose frame misses least, because a frame
that stays incomplete would never leave.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from odradek.net.held_bytes import (
    COUNTED_BYTES,
    EXTRA_BYTES,
    AnswerBytes,
    Holder,
    MemorySettings,
    limit_or_default,
)
from odradek.waiting.clock import Clock, Timer

MEMORY: Final = 16
"""Reason to stop reading: all pairs together hold too much. See also `pair_state`."""


class Reading(Protocol):
    """One connection of a pair: a `SocketEnd`."""

    transport: asyncio.Transport | None

    @property
    def writer(self) -> Reading | None:
        """The other connection, which sends what this one reads."""

    def hold(self, reason: int) -> None: ...
    def release(self, reason: int) -> None: ...
    def give_up(self) -> None: ...


class ReadBytes:
    """The bytes that one end has read and that have not left: a `Holder`. Most ends never need one.

    Args:
        end: The end that has read them.
        pool: The memory of all pairs.
    """

    __slots__ = ("end", "frame_bytes", "is_gone", "missing_bytes", "pool", "unread_bytes")

    def __init__(self, end: Reading, pool: PairBytes) -> None:
        self.end = end
        self.pool = pool
        self.frame_bytes = 0
        """Part of a frame that is held back."""
        self.missing_bytes = 0
        self.unread_bytes = 0
        """Bytes that wait in the transport of the end to be decrypted."""
        self.is_gone = False
        """The bytes have left, or never will."""

    @property
    def closing(self) -> bool:
        return self.is_gone

    def stop_reading(self, reason: int) -> None:
        self.end.hold(reason)

    def read_again(self, reason: int) -> None:
        self.end.release(reason)

    def abort(self) -> None:
        self.end.give_up()

    def unsent_bytes(self) -> int:
        writer = self.end.writer
        if self.is_gone:
            return 0
        if writer is None or writer.transport is None:
            return self.frame_bytes + self.unread_bytes
        return self.frame_bytes + self.unread_bytes + writer.transport.get_write_buffer_size()

    def frame(self, held_bytes: int, missing_bytes: int) -> None:
        """A frame is held back, or (0) no longer."""
        self.frame_bytes, self.missing_bytes = held_bytes, missing_bytes
        self.count()

    def unread(self, size_bytes: int) -> None:
        """So much waits in the transport of the end."""
        self.unread_bytes = size_bytes
        self.count()

    def count(self) -> None:
        """Tell the pool how much is held now; little is not counted."""
        size = self.unsent_bytes()
        self.pool.hold(self, size if size > COUNTED_BYTES else 0)

    def drop(self) -> None:
        """The peer of the other end takes nothing any more."""
        self.is_gone = True
        self.count()


class PairBytes(AnswerBytes):
    """The memory of all pairs together."""

    what = "pairs"
    reason = MEMORY

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
