"""A message with records that are still in files, as the pieces in which it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class RecordSlice(Protocol):
    """Records in a file, which are read while they are sent."""

    def __len__(self) -> int:
        """The number of bytes."""

    def __bytes__(self) -> bytes:
        """All bytes.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """

    def read(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start`` on; fewer only if the file has lost them.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """


class Parts:
    """The pieces of an encoded message, in order."""

    __slots__ = ("pieces", "size_bytes")

    def __init__(self, pieces: Sequence[bytes | memoryview | RecordSlice]) -> None:
        """Join what lies between two slices.

        Raises:
            TypeError: A piece is neither bytes nor a slice.
        """
        self.pieces: list[bytes | RecordSlice] = []
        between: list[bytes | memoryview] = []
        for piece in pieces:
            if isinstance(piece, bytes | memoryview) or not isinstance(piece, RecordSlice):
                between.append(piece)
                continue
            self.pieces += b"".join(between), piece
            between.clear()
        self.pieces.append(b"".join(between))
        self.size_bytes = sum(map(len, self.pieces))

    def __len__(self) -> int:
        return self.size_bytes

    def __radd__(self, beginning: bytes) -> Parts:
        """The parts after ``beginning``, which stays a piece of its own: the next one may be a megabyte."""
        whole = Parts(())
        whole.pieces = [beginning, *self.pieces]
        whole.size_bytes = len(beginning) + self.size_bytes
        return whole

    def __bytes__(self) -> bytes:
        """The whole message, read into memory.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        return b"".join(map(bytes, self.pieces))
