"""A message with records that are still in files, as the pieces in which it is sent."""

from __future__ import annotations

from collections.abc import Sequence


class RecordSlice:
    """Records in a file, which are read while they are sent."""

    __slots__ = ()

    def __len__(self) -> int:
        """The number of bytes."""
        raise NotImplementedError

    def __bytes__(self) -> bytes:
        """All bytes.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        raise NotImplementedError

    def read(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start`` on; fewer only if the file has lost them.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        raise NotImplementedError

    def send_to(self, socket: int, start: int, length: int) -> int:
        """Send ``length`` bytes from ``start`` on to a socket that does not block, without reading them.

        Returns:
            How many it took; fewer if the socket is full, or if the file has lost the others.

        Raises:
            OSError: It took none: the socket is full, or one of both has failed.
            ApiError: KAFKA_STORAGE_ERROR.
        """
        raise NotImplementedError


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
            if isinstance(piece, RecordSlice):
                self.add(b"".join(between))
                self.pieces.append(piece)
                between.clear()
            else:
                between.append(piece)
        self.add(b"".join(between))
        self.size_bytes = sum(map(len, self.pieces))

    def add(self, joined: bytes) -> None:
        """Append what lies between two slices, if there is anything."""
        if joined:
            self.pieces.append(joined)

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
