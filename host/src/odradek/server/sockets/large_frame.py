"""A large frame that is still arriving.

Chunks of a frame arrive as separate ``bytes`` objects and must be joined. For Produce requests of a megabyte
the copying costs as much as the CRC and the write to the log. So the rest of such a frame is received into a
buffer that all connections of a listener share, and appended to the part that has arrived.

An announced length reserves no memory: a frame takes the bytes that have arrived and an eighth more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

SHARED_BUFFER_BYTES = 1 << 20
"""Nearly all frames of a megabyte arrive in one piece; a buffer of a quarter of it costs 10 % more CPU."""


class FrameTaker(Protocol):
    """The channel that a frame arrives for."""

    monotonic_ms: Callable[[], int]
    last_active_ms: int
    closing: bool

    def large_frame_grew(self, size_bytes: int, missing_bytes: int) -> None:
        """Count what has arrived."""

    def large_frame_received(self, frame: bytearray) -> None:
        """Take the transport back and answer the frame. Nothing after it has been read."""

    def connection_lost(self, exc: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class LargeFrame(asyncio.BufferedProtocol):
    """Takes the channel's place on its transport until one frame is complete, then hands it over."""

    __slots__ = ("channel", "frame", "missing_bytes", "shared")

    def __init__(
        self, channel: FrameTaker, frame_bytes: int, beginning: bytes | bytearray, shared: memoryview
    ) -> None:
        self.channel = channel
        self.shared = shared
        """Empty between two turns of the loop."""
        self.frame = bytearray(beginning)
        """The frame so far, with its length."""
        self.missing_bytes = frame_bytes - len(beginning)

    def take_over(self, transport: asyncio.Transport) -> None:
        """Receive the connection's data instead of the channel."""
        switch(transport, self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.shared[: self.missing_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        channel = self.channel
        channel.last_active_ms = channel.monotonic_ms()
        if channel.closing:
            return
        self.frame += self.shared[:nbytes]
        self.missing_bytes -= nbytes
        channel.large_frame_grew(len(self.frame), self.missing_bytes)
        if not self.missing_bytes:
            channel.large_frame_received(self.frame)

    def connection_lost(self, exc: Exception | None) -> None:
        self.channel.connection_lost(exc)

    def pause_writing(self) -> None:
        self.channel.pause_writing()

    def resume_writing(self) -> None:
        self.channel.resume_writing()


def switch(transport: asyncio.Transport, protocol: asyncio.BaseProtocol, *, reads: bool = True) -> None:
    """Change the protocol of a transport and restart reading: only then does uvloop look at its kind.

    Args:
        transport: The connection.
        protocol: The new protocol.
        reads: False if the transport has to stay paused.
    """
    transport.pause_reading()
    transport.set_protocol(protocol)
    if reads:
        transport.resume_reading()
