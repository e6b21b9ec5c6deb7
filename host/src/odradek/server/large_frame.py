"""A large frame that is still arriving.

Pieces of a frame come as ``bytes`` that have to be copied together. With Produce requests of a megabyte those
copies cost as much as the CRC and the write to the log, so that the rest of such a frame is received where it
will be parsed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.server.channel import Channel

GROWTH = 16
"""Memory set aside for a frame is at most this many times what has come: a length alone sets none aside."""


class LargeFrame(asyncio.BufferedProtocol):
    """Stands for a channel on its transport until one frame is whole, which it hands over."""

    __slots__ = ("channel", "filled", "frame", "frame_bytes", "view")

    def __init__(self, channel: Channel, frame_bytes: int, beginning: bytes | bytearray) -> None:
        self.channel = channel
        self.frame_bytes = frame_bytes
        """Its length included."""
        self.filled = 0
        self.frame = bytearray()
        self.hold(beginning)

    def hold(self, beginning: bytes | bytearray) -> None:
        """Go on in a buffer that has room for more than its beginning."""
        self.filled = len(beginning)
        self.frame = bytearray(min(self.frame_bytes, GROWTH * self.filled))
        self.view = memoryview(self.frame)
        self.view[: self.filled] = beginning

    def take_over(self, transport: asyncio.Transport) -> None:
        """Receive instead of the channel."""
        switch(transport, self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.view[self.filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self.filled += nbytes
        channel = self.channel
        channel.last_active_ms = channel.now_ms()
        if channel.closing:
            return
        if self.filled == self.frame_bytes:
            switch(channel.transport, channel)
            channel.large_frame_received(self.frame)
        elif self.filled == len(self.frame):
            self.hold(self.frame)

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
