"""A part of a segment's file that is read while it is sent."""

from __future__ import annotations

import os
from typing import Protocol

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.parts import RecordSlice


class Readable(Protocol):
    """A segment."""

    @property
    def descriptor(self) -> int:
        """The open file."""

    def pread(self, length: int, position: int) -> bytes:
        """Bytes of the file."""


class HeldFile:
    """The file of a segment, shared by all slices of it.

    A segment that is deleted, compacted or moved hands its descriptor over, so that the clients that it is
    being sent to get the rest.
    """

    __slots__ = ("__weakref__", "_descriptor", "_segment")

    def __init__(self, segment: Readable) -> None:
        self._segment: Readable | None = segment
        self._descriptor = -1

    def keep(self, descriptor: int) -> None:
        """Take the descriptor of a segment that is being closed; -1 if it has none."""
        self._segment, self._descriptor = None, descriptor

    @property
    def descriptor(self) -> int:
        """The open file; -1 if it is closed for good.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        return self._descriptor if self._segment is None else self._segment.descriptor

    def pread(self, length: int, position: int) -> bytes:
        """Bytes of the file.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        if self._segment is not None:
            return self._segment.pread(length, position)
        try:
            return os.pread(self._descriptor, length, position)
        except OSError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "cannot read a deleted segment") from error

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


class FileSlice(RecordSlice):
    """Bytes of a segment that do not change: appends only add to the file."""

    __slots__ = ("_file", "_position", "_size_bytes")

    def __init__(self, file: HeldFile, position: int, size_bytes: int) -> None:
        self._file = file
        self._position = position
        self._size_bytes = size_bytes

    def __len__(self) -> int:
        return self._size_bytes

    def __bytes__(self) -> bytes:
        return self.read(0, self._size_bytes)

    def read(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start`` on; fewer only if the file has lost them.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        return self._file.pread(min(length, self._size_bytes - start), self._position + start)

    def send_to(self, socket: int, start: int, length: int) -> int:
        """Let the kernel copy ``length`` bytes from ``start`` on to a socket that does not block.

        Returns:
            How many it took; fewer if the socket is full, or if the file has lost the others.

        Raises:
            OSError: It took none: the socket is full, or one of both has failed.
            ApiError: KAFKA_STORAGE_ERROR.
        """
        return os.sendfile(socket, self._file.descriptor, self._position + start, length)
