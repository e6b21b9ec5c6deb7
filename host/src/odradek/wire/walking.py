"""A walk over a message that comes in pieces."""

from __future__ import annotations

from typing import Any, Final

from odradek.wire.errors import Truncated
from odradek.wire.walk_source import ATOM_BYTES, StreamedWalk

WINDOW_BYTES: Final = 16_384
"""Copied for the walk, which reads single bytes: that is faster in bytes than in a view. Smaller windows cost
more if partitions have a kilobyte of records each, larger ones if they have many."""


class Walking:
    """Gives a streamed walk the bytes that it wants, and back those that it has passed.

    Args:
        walk: The walk.
        size: The size of the message.
    """

    __slots__ = ("fed", "found", "held", "size", "walk", "wanted")

    def __init__(self, walk: StreamedWalk, size: int) -> None:
        self.walk = walk
        self.size = size
        self.fed = 0
        """Bytes of the message that have come."""
        self.wanted = next(walk)
        """The position where the walk goes on, or where it has ended."""
        self.held = b""
        """Bytes from there on that have come: fewer than `ATOM_BYTES` until the walk has ended, then all."""
        self.found: tuple[Any, ...] | None = None
        """The result of the walk, once it has ended."""

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the message, and return those that lie before the walk.

        Returned views point into ``chunk``.

        Raises:
            WireError: The bytes do not follow the protocol.
            Truncated: The message ends before the walk does.
        """
        base, self.fed = self.fed, self.fed + len(chunk)
        if self.found is None:
            self.advance(chunk, base)
        passed = min(self.fed, self.wanted) - base
        before = self.held[: passed + len(self.held)] if passed < 0 else self.held
        out: list[bytes | memoryview] = [before] if before else []
        if passed > 0:
            out.append(chunk[:passed])
        self.held = self.held[len(before) :] + bytes(chunk[max(passed, 0) :])
        return out

    def advance(self, chunk: memoryview, base: int) -> None:
        """Walk as far as the bytes reach."""
        end, size = self.fed, self.size
        while self.wanted < end or end == size:
            at = self.wanted
            if at < base:
                window = self.held[at - base + len(self.held) :] + bytes(chunk[:ATOM_BYTES])
            else:
                window = bytes(chunk[at - base : at - base + WINDOW_BYTES])
            limit = len(window)
            if at + limit < size:
                limit -= ATOM_BYTES
                if limit < 0:
                    return
            try:
                self.wanted = self.walk.send((window, limit))
            except StopIteration as done:
                self.found = done.value
                self.wanted = done.value[0]
            if self.wanted > size:
                raise Truncated(f"a field ends at {self.wanted}, its message at {size}")
            if self.found is not None:
                return
