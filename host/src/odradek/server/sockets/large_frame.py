"""A large frame that is still arriving.

Chunks of a frame come as ``bytes``, each in memory of its own, and have to be copied together. With Produce
requests of a megabyte that costs as much as the CRC and the write to the log. So the rest of such a frame is
received in a buffer that all connections of a listener share, and added to what has come.

A length that is only announced sets no memory aside: a frame takes what has come of it and an eighth more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.server.sockets.channel import Channel

SHARED_BUFFER_BYTES = 1 << 20
"""Of the frames of a megabyte nearly all arrive in one piece; a quarter of it costs 10 % more CPU."""


class LargeFrame(asyncio.BufferedProtocol):
    """Stands for a channel on its transport until one frame is whole, which it hands over."""

    __slots__ = ("channel", "frame", "missing_bytes", "shared")

    def __init__(self, channel: Channel, frame_bytes: int, beginning: bytes | bytearray) -> None:
        self.channel = channel
        self.shared = channel.listener.shared_buffer
        """Never holds anything between two turns of the loop."""
        self.frame = bytearray(beginning)
        """Its length included."""
        self.missing_bytes = frame_bytes - len(beginning)

    def take_over(self, transport: asyncio.Transport) -> None:
        """Receive instead of the channel."""
        switch(transport, self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.shared[: self.missing_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        channel = self.channel
        channel.last_active_ms = channel.now_ms()
        if channel.closing:
            return
        self.frame += self.shared[:nbytes]
        self.missing_bytes -= nbytes
        if not self.missing_bytes:
            switch(channel.transport, channel)
            channel.large_frame_received(self.frame)

    def connection_lost(self, exc: Exception | None) -> None:
        self.channel.connection_lost(exc)

    def pause_writing(self) -> None:
        self.channel.pause_writing()

    def resume_writing(self) -> None:
        self.channel.resume_writing()


def switch(transport: asyncio.Transport, protocol: asyncio.BaseProtocol) -> None:
    """Give a transport that is reading another protocol; uvloop asks which kind it is when reading starts."""
    transport.pause_reading()
    transport.set_protocol(protocol)
    transport.resume_reading()
