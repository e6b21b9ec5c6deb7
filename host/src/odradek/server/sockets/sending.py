"""An answer with records that are read from their files while it is sent."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.parts import Parts, RecordSlice

PIECE_BYTES = 524_288
"""How much is read at once. Fetches of a megabyte need more CPU with smaller pieces, and not less with larger
ones."""
SMALL_PIECE_BYTES = 65_536
"""The same while unread answers hold more than their limit."""
PIECES_PER_TURN = 4
"""How many pieces are sent before the other connections have their turn: about a millisecond."""


class Writer(Protocol):
    """A channel."""

    transport: asyncio.Transport
    writing_paused: bool


class Sending:
    """The part of one answer that has not been read yet."""

    __slots__ = ("left", "position")

    hurry = None
    """Nothing can make it come earlier; see `Deferred.hurry`."""

    def __init__(self, answer: Parts) -> None:
        self.left = deque(answer.pieces)
        self.position = 0
        """How much of the first piece has been read."""

    @property
    def memory_bytes(self) -> int:
        """The part that is in memory."""
        return sum(len(piece) for piece in self.left if isinstance(piece, bytes))

    def write_to(self, channel: Writer, *, scarce: bool) -> None:
        """Write until the transport holds enough, or the turn is over.

        Args:
            channel: The connection.
            scarce: Whether unread answers hold more than their limit.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the rest of the answer cannot be sent.
        """
        for _ in range(PIECES_PER_TURN):
            if not self.left or channel.writing_paused:
                return
            channel.transport.writelines(self.next_bytes(SMALL_PIECE_BYTES if scarce else PIECE_BYTES))

    def next_bytes(self, room: int) -> list[bytes]:
        """Read what comes next, at most ``room``.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the rest of the answer cannot be sent.
        """
        found: list[bytes] = []
        while room and self.left:
            piece = self.left[0]
            length = min(len(piece) - self.position, room)
            found.append(cut(piece, self.position, length))
            self.position += length
            room -= length
            if self.position == len(piece):
                self.left.popleft()
                self.position = 0
        return found

    def lost(self) -> None:
        """The connection is lost: let the files go."""
        self.left.clear()


def cut(piece: bytes | RecordSlice, start: int, length: int) -> bytes:
    """A part of a piece.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR, also if the file has lost its end.
    """
    if isinstance(piece, bytes):
        return piece if length == len(piece) else piece[start : start + length]
    found = piece.read(start, length)
    if len(found) < length:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "a segment is shorter than when it was read")
    return found
