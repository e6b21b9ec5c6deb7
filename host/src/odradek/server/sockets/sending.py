"""An answer with records that are read from their files while it is sent."""

from __future__ import annotations

from collections import deque

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.parts import Parts, RecordSlice

PIECE_BYTES = 524_288
"""How much is read at once: it stays in the cache of a core from the file to the socket."""


class Sending:
    """The part of one answer that has not been read yet."""

    __slots__ = ("left", "position")

    hurry = None
    """Nothing can make it come earlier; see `Deferred.hurry`."""

    def __init__(self, answer: Parts) -> None:
        self.left = deque(answer.pieces)
        self.position = 0
        """How much of the first piece has been read."""

    def next_bytes(self) -> list[bytes]:
        """Read what comes next, at most `PIECE_BYTES`.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the rest of the answer cannot be sent.
        """
        found: list[bytes] = []
        room = PIECE_BYTES
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
