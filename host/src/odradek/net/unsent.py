"""Bytes that wait to be sent, in the pieces in which they were written."""

from __future__ import annotations

from collections import deque


class Unsent:
    """The pieces, of which parts are taken."""

    __slots__ = ("pieces", "size_bytes", "taken_bytes")

    def __init__(self) -> None:
        self.pieces: deque[bytes] = deque()
        self.taken_bytes = 0
        """The part of the first piece that has been taken."""
        self.size_bytes = 0

    def __bool__(self) -> bool:
        return bool(self.pieces)

    def add(self, piece: bytes) -> None:
        """Add a piece, which is not empty."""
        self.pieces.append(piece)
        self.size_bytes += len(piece)

    def take(self, most: int) -> memoryview:
        """Take the next part, from one piece."""
        first, begin = self.pieces[0], self.taken_bytes
        part = memoryview(first)[begin : begin + most]
        self.taken_bytes += len(part)
        self.size_bytes -= len(part)
        if self.taken_bytes == len(first):
            self.pieces.popleft()
            self.taken_bytes = 0
        return part

    def clear(self) -> None:
        """Drop everything."""
        self.pieces.clear()
        self.taken_bytes = self.size_bytes = 0
