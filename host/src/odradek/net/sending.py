"""An answer with records that are in files while it is sent.

On a connection without TLS the kernel copies large slices from the file to the socket (``sendfile``), and
the transport writes the bytes around them. It must have written everything before, so meanwhile it pauses
as soon as it holds a byte. If the kernel stops, for whatever reason, the transport gets the next few bytes:
it tells when the client has read, or finds what is wrong with the connection; and reading them finds what
is wrong with the file.

Other slices are read piece by piece.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import Final

from odradek.net.request_reader import RequestReader
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.parts import Parts, RecordSlice

WRITE_HIGH_WATER_BYTES: Final = 262_144
"""A transport that holds more pauses its channel."""
TURN_BYTES: Final = 2_097_152
"""How much is sent before the other connections have their turn: about a millisecond."""
PIECE_BYTES: Final = 262_144
"""How much is read at once. Over TLS smaller pieces need more CPU, and larger ones no less."""
SMALL_PIECE_BYTES: Final = 65_536
"""The same while unread answers hold more than their limit."""
SENT_BYTES: Final = 1_048_576
"""How much the kernel sends at once: it waits for a file that is not in the page cache."""
LARGE_SLICE_BYTES: Final = 131_072
"""Smaller slices are read: that needs no more CPU than the system calls around them."""
WAITING_BYTES: Final = 4_096
"""If a socket is full, the transport gets so much: it tells when the socket takes more."""
NO_SOCKET: Final = -1


class Sending:
    """The part of one answer that has not been sent yet.

    Args:
        answer: The answer.
        socket: The descriptor that the kernel sends to; `NO_SOCKET` if all slices have to be read.
    """

    __slots__ = ("left", "position", "socket")

    hurry = None
    """Nothing can make it come earlier; see `Deferred.hurry`."""

    def __init__(self, answer: Parts, socket: int = NO_SOCKET) -> None:
        self.left = deque(answer.pieces)
        self.position = 0
        """How much of the first piece has been sent."""
        self.socket = socket

    @property
    def memory_bytes(self) -> int:
        """The part that is in memory."""
        return sum(len(piece) for piece in self.left if isinstance(piece, bytes))

    def write_to(self, channel: RequestReader, *, scarce: bool) -> None:
        """Write until the transport holds enough, or the turn is over.

        Args:
            channel: The connection.
            scarce: Whether unread answers hold more than their limit.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the rest of the answer cannot be sent.
        """
        transport, room = channel.transport, TURN_BYTES
        piece_bytes = SMALL_PIECE_BYTES if scarce else PIECE_BYTES
        if self.socket != NO_SOCKET:
            transport.set_write_buffer_limits(high=0)
        while room > 0 and self.left and not channel.writing_paused:
            if self.socket != NO_SOCKET and transport.is_closing():
                # it may drop what it gets, and then the client must not get what follows
                self.socket = NO_SOCKET
            if self.is_for_kernel(self.left[0]):
                room -= self.write_by_kernel(transport, min(SENT_BYTES, room))
            else:
                data = self.next_bytes(min(piece_bytes, room))
                room -= len(data)
                transport.write(data)
        if self.socket != NO_SOCKET and not self.left:
            transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)

    def is_for_kernel(self, piece: bytes | RecordSlice) -> bool:
        """Whether the kernel sends a piece."""
        return self.socket != NO_SOCKET and len(piece) >= LARGE_SLICE_BYTES and isinstance(piece, RecordSlice)

    def write_by_kernel(self, transport: asyncio.Transport, room: int) -> int:
        """Let the kernel send more of the slice that comes first, at most ``room``.

        Returns:
            How much was asked of it.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the rest of the answer cannot be sent.
        """
        piece = self.left[0]
        assert isinstance(piece, RecordSlice)
        wanted = min(len(piece) - self.position, room)
        try:
            sent = piece.send_to(self.socket, self.position, wanted)
        except OSError:
            sent = 0
        self.advance(sent)
        if sent < wanted:
            transport.write(self.next_bytes(WAITING_BYTES))
        return wanted

    def next_bytes(self, room: int) -> bytes:
        """Read what comes next, at most ``room``, up to a slice for the kernel.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the rest of the answer cannot be sent.
        """
        found: list[bytes] = []
        while room and self.left:
            piece = self.left[0]
            if found and self.is_for_kernel(piece):
                break
            found.append(cut(piece, self.position, min(len(piece) - self.position, room)))
            room -= len(found[-1])
            self.advance(len(found[-1]))
        return b"".join(found)

    def advance(self, sent_bytes: int) -> None:
        """Some bytes of the first piece have been sent or read."""
        self.position += sent_bytes
        if self.position == len(self.left[0]):
            self.left.popleft()
            self.position = 0

    def lost(self) -> None:
        """The connection is lost: let the files go."""
        self.left.clear()


def plain_socket(transport: asyncio.Transport) -> int:
    """The descriptor that the kernel can send files to: that of a connection without TLS, or `NO_SOCKET`."""
    if transport.get_extra_info("ssl_object") is not None or not hasattr(os, "sendfile"):
        return NO_SOCKET
    socket = transport.get_extra_info("socket")
    return NO_SOCKET if socket is None else int(socket.fileno())


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
