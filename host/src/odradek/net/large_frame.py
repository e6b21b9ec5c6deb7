"""A large frame that is still arriving.

Chunks of a frame arrive as separate ``bytes`` objects and must be joined. For Produce requests of a megabyte
the copying costs as much as the CRC and the write to the log. So the rest of such a frame is received into a
buffer that all connections of a listener share, and appended to the part that has arrived.

An announced length reserves no memory: a frame takes the bytes that have arrived and an eighth more. A frame
of many megabytes has pages of its own, which the system provides as they are written: it is not copied while
it grows, and leaves no hole in the heap.
"""

from __future__ import annotations

import asyncio
import mmap
from collections import deque
from typing import Any, Protocol

from odradek.waiting.clock import Clock, Timer

SHARED_BUFFER_BYTES = 1 << 20
"""Nearly all frames of a megabyte arrive in one piece; a buffer of a quarter of it costs 10 % more CPU."""
SMALL_PIECE_BYTES = 65_536
"""The same while memory is scarce, so that a thousand connections do not get another megabyte each; and on a
busy loop, on which many connections may have a piece in one pass; and always for pages that the system still
has to find."""
HUGE_FRAME_BYTES = 32 << 20
"""A frame of this size has pages of its own. Smaller ones would take more CPU that way: they use memory that
the process already has."""

FREED_AT_ONCE_BYTES = 2 << 20
"""Takes 0.2 ms."""
FREED_EVERY_MS = 2


class FrameTaker(Protocol):
    """The channel that a frame arrives for."""

    closing: bool

    @property
    def wants_small_pieces(self) -> bool:
        """Whether memory is scarce or the loop is busy."""

    def monotonic_ns(self) -> int: ...

    def piece_received(self, began_ns: int) -> None:
        """A piece of the frame has arrived, which took since ``began_ns``. If the loop is busy, the next one
        waits.
        """

    def large_frame_grew(self, size_bytes: int, missing_bytes: int) -> None:
        """Count what has arrived."""

    def discard(self, frame: mmap.mmap, size_bytes: int) -> None:
        """Free the memory of a frame that did not get complete."""

    def large_frame_received(self, frame: bytearray | mmap.mmap) -> None:
        """Take the transport back and answer the frame. Nothing after it has been read."""

    def eof_received(self) -> bool: ...

    def connection_lost(self, exc: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class LargeFrame(asyncio.BufferedProtocol):
    """Takes the channel's place on its transport until one frame is complete, then hands it over."""

    __slots__ = ("began_ns", "channel", "frame", "missing_bytes", "shared", "size_bytes")

    def __init__(
        self, channel: FrameTaker, frame_bytes: int, beginning: bytes | bytearray, shared: memoryview
    ) -> None:
        self.channel = channel
        self.shared = shared
        """Empty between two turns of the loop."""
        self.frame = self.begin(frame_bytes, beginning)
        """The frame so far, with its length."""
        self.missing_bytes = frame_bytes - len(beginning)
        self.size_bytes = len(beginning)
        self.began_ns = channel.monotonic_ns()
        """When the reading of a piece began."""

    def begin(self, _frame_bytes: int, beginning: bytes | bytearray) -> Any:
        """The memory of the frame; raises OSError if there is none."""
        return bytearray(beginning)

    def get_buffer(self, sizehint: int) -> memoryview:
        self.began_ns = self.channel.monotonic_ns()
        return self.shared[: min(self.missing_bytes, self.room)]

    @property
    def room(self) -> int:
        """The most that is received at once."""
        return SMALL_PIECE_BYTES if self.channel.wants_small_pieces else SHARED_BUFFER_BYTES

    def take(self, nbytes: int) -> None:
        """Add what was received."""
        self.frame += self.shared[:nbytes]

    def buffer_updated(self, nbytes: int) -> None:
        channel = self.channel
        if channel.closing:
            return
        self.take(nbytes)
        channel.piece_received(self.began_ns)
        self.size_bytes += nbytes
        self.missing_bytes -= nbytes
        channel.large_frame_grew(self.size_bytes, self.missing_bytes)
        if not self.missing_bytes:
            frame = self.frame
            self.forget()
            channel.large_frame_received(frame)

    def forget(self) -> None:
        """Let go of the frame and the channel: uvloop keeps the methods of a transport's former protocol, and
        thus this object, until the next large frame.
        """
        del self.frame, self.channel

    def eof_received(self) -> bool:
        return self.channel.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        channel = self.channel
        self.forget()
        channel.connection_lost(exc)

    def pause_writing(self) -> None:
        self.channel.pause_writing()

    def resume_writing(self) -> None:
        self.channel.resume_writing()


class HugeFrame(LargeFrame):
    """Receives straight into the pages of the frame."""

    __slots__ = ()

    def begin(self, frame_bytes: int, beginning: bytes | bytearray) -> Any:
        frame = mmap.mmap(-1, frame_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        frame[: len(beginning)] = beginning
        return frame

    def get_buffer(self, sizehint: int) -> memoryview:
        self.began_ns = self.channel.monotonic_ns()
        return memoryview(self.frame)[self.size_bytes : self.size_bytes + SMALL_PIECE_BYTES]

    def take(self, nbytes: int) -> None:
        """Nothing: it is in its place."""

    def connection_lost(self, exc: Exception | None) -> None:
        self.channel.discard(self.frame, self.size_bytes)
        super().connection_lost(exc)


class DiscardedFrames:
    """Frees the pages of frames that did not get complete, a few at a time.

    To free 90 MB at once takes eight milliseconds, and connections tend to be lost together.
    """

    def __init__(self, clock: Clock, timer: Timer) -> None:
        self.clock = clock
        self.timer = timer
        self.frames: deque[tuple[mmap.mmap, int]] = deque()
        """Each with the size of the part that has not been freed."""

    def add(self, frame: mmap.mmap, size_bytes: int) -> None:
        """Free the first ``size_bytes`` of a frame soon."""
        self.frames.append((frame, size_bytes))
        if len(self.frames) == 1:
            self.free_later()

    def free_later(self) -> None:
        self.timer.schedule(self.clock.monotonic_ms() + FREED_EVERY_MS, self.free_some)

    def free_some(self) -> None:
        """Free the end of the oldest frame."""
        frame, size_bytes = self.frames.popleft()
        left_bytes = max(size_bytes - FREED_AT_ONCE_BYTES, 0) // mmap.PAGESIZE * mmap.PAGESIZE
        if hasattr(mmap, "MADV_DONTNEED"):
            frame.madvise(mmap.MADV_DONTNEED, left_bytes, size_bytes - left_bytes)
        if left_bytes:
            self.frames.appendleft((frame, left_bytes))
        if self.frames:
            self.free_later()


def large_frame(
    channel: FrameTaker, frame_bytes: int, beginning: bytes | bytearray, shared: memoryview
) -> LargeFrame:
    """The receiver of one frame, according to its size."""
    if frame_bytes >= HUGE_FRAME_BYTES:
        try:
            return HugeFrame(channel, frame_bytes, beginning, shared)
        except OSError:  # a system that does not overcommit has not so many pages now
            pass
    return LargeFrame(channel, frame_bytes, beginning, shared)


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
