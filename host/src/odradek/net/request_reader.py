"""The bytes of a connection that are not answered yet, and when its transport reads more.

While requests wait, reading goes on up to `READ_AHEAD_BYTES`, so that the host notices when the client
leaves.
"""

from __future__ import annotations

import asyncio
import struct
from mmap import mmap
from typing import Any, Final, cast

from odradek.net.channel_owner import ChannelOwner
from odradek.net.held_bytes import COUNTED_BYTES, Pause
from odradek.net.large_frame import large_frame, switch

FRAME_LENGTH = struct.Struct(">i")
unpack_length = FRAME_LENGTH.unpack_from
READ_AHEAD_BYTES: Final = 65_536
LARGE_FRAME_BYTES: Final = 65_536
NEVER_NS: Final = 1 << 63


class RequestReader(asyncio.Protocol):
    """The receiving half of a channel."""

    __slots__ = (
        "buffer", "closing", "counted_bytes", "counted_since_ns", "frame_bytes", "in_ring",
        "last_active_ms", "leaving", "max_request_bytes", "missing_bytes", "monotonic_ms", "monotonic_ns",
        "not_reading", "owner", "torn", "transport", "turns", "unread_bytes", "used_ns",
    )  # fmt: skip

    transport: asyncio.Transport
    pending: object | None
    writing_paused: bool

    def __init__(self, owner: ChannelOwner) -> None:
        self.owner = owner
        self.buffer: bytes | bytearray | None = None
        """Bytes that are not answered yet; None if there are none. They are ``bytes`` as they arrived until
        they have to grow or shrink."""
        self.frame_bytes = 0
        """Size of the request that a `LargeFrame` receives, or of a large one that is answered later."""
        self.missing_bytes = 0
        """Bytes that a `LargeFrame` has not received yet."""
        self.unread_bytes = 0
        """Bytes that wait in the transport to be decrypted."""
        self.counted_bytes = 0
        """Bytes of the request and the buffer that the host's `Memory` has counted."""
        self.not_reading = 0
        """Those of `Pause` that are there."""
        self.closing = False
        self.leaving = False
        """The client sends no more: the connection is closed when the last requests are answered."""
        self.torn = False
        """The client sends no more, and has not sent all of a request or waits for an answer."""
        self.turns = owner.turns
        self.in_ring = False
        self.used_ns = 0
        """Time of the loop that this connection has used since `counted_since_ns`."""
        self.counted_since_ns = 0
        self.last_active_ms = 0
        self.max_request_bytes = owner.max_request_bytes
        self.monotonic_ms = owner.clock.monotonic_ms
        self.monotonic_ns = owner.clock.monotonic_ns

    def take_turn(self, end_ns: int) -> bool:
        """Answer requests in the buffer; see `TurnTaker`."""
        raise NotImplementedError

    @property
    def about(self) -> dict[str, Any]:
        """See `about_client`."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close without sending the rest."""
        self.closing = True
        self.transport.abort()

    def unsent_bytes(self) -> int:
        """Memory of the answer that the client has not read yet."""
        raise NotImplementedError

    def receive_large(self, frame_bytes: int, beginning: bytes | bytearray) -> bool:
        """Let a `LargeFrame` receive the rest of a large frame; False if the frame is not large."""
        if not (LARGE_FRAME_BYTES <= frame_bytes - 4 <= self.max_request_bytes):
            return False
        if len(beginning) >= frame_bytes or self.not_reading:
            return False
        switch(self.transport, large_frame(self, frame_bytes, beginning, self.owner.shared_buffer))
        self.buffer = None
        self.large_frame_grew(len(beginning), frame_bytes - len(beginning))
        return True

    def piece_received(self, began_ns: int) -> None:
        """Part of a large frame has arrived. On a busy loop the next one waits, as a request does."""
        now_ns = self.monotonic_ns()
        self.last_active_ms = self.monotonic_ms()
        self.used_ns += now_ns - began_ns
        if now_ns > self.turns.free_until_ns and self.turns.must_pause(self, now_ns):
            self.stop_reading(Pause.TURN)
            self.turns.read_later(self)

    def read_next_piece(self) -> None:
        """Read the rest of a large frame, which has waited."""
        self.read_again(Pause.TURN)

    def large_frame_grew(self, size_bytes: int, missing_bytes: int) -> None:
        """Count what has arrived of a large frame."""
        self.frame_bytes, self.missing_bytes = size_bytes, missing_bytes
        self.count()

    @property
    def wants_small_pieces(self) -> bool:
        """Whether memory is scarce or the loop is busy."""
        return self.owner.memory.requests.is_exceeded or self.turns.is_busy

    def unread(self, size_bytes: int) -> None:
        """So much has arrived and waits in the transport to be decrypted."""
        self.unread_bytes = size_bytes
        self.count()

    def count(self) -> None:
        """Count the bytes of requests that this connection holds."""
        held = self.frame_bytes + self.unread_bytes + (0 if self.buffer is None else len(self.buffer))
        if held < COUNTED_BYTES:
            held = 0
        if held != self.counted_bytes:
            self.counted_bytes = held
            self.owner.memory.requests.hold(self, held)

    def large_frame_received(self, frame: bytearray | mmap) -> None:
        """Take the transport back and answer a large frame. Nothing after it has been read."""
        switch(self.transport, self, reads=not self.not_reading)
        # one that has to wait can be appended to
        self.buffer = bytearray(frame) if self.muted else cast(bytearray, frame)
        self.frame_bytes = 0
        self.take_in()

    def eof_received(self) -> bool:
        """The client sends no more. The connection is closed in its turn; meanwhile its transport stays.

        What the client has sent before is answered first, as in Kafka: the last push of a consumer waits
        behind a Fetch, and records with ``acks=0`` behind others.
        """
        self.leaving, self.torn = True, self.is_torn()
        if self.has_request() and not self.closing:
            self.hurry()
        else:
            self.depart()
        return True

    def is_torn(self) -> bool:
        """Whether the client waits for an answer, or has not sent all of a request."""
        raise NotImplementedError

    def hurry(self) -> None:
        """Have the pending answer now, if there is one and it need not wait."""
        raise NotImplementedError

    def depart(self) -> None:
        """Close the connection of a client that has left, in its turn."""
        self.turns.departures.add(self.transport.close)

    def discard(self, frame: mmap, size_bytes: int) -> None:
        """Free the memory of a frame that did not get complete."""
        self.owner.memory.discarded.add(frame, size_bytes)

    def append(self, data: bytes) -> None:
        """Add what has arrived to the buffer."""
        if self.buffer is None:
            self.buffer = data
        else:
            if isinstance(self.buffer, bytes):
                self.buffer = bytearray(self.buffer)
            self.buffer += data

    def take_in(self) -> None:
        """Answer the request in the buffer; several ones wait for their turn."""
        buffer = self.buffer
        assert buffer is not None
        if len(buffer) >= 4 and 0 <= unpack_length(buffer)[0] < len(buffer) - 4:
            if not self.muted:
                self.turns.join(self)
            self.limit_read_ahead()
        else:
            self.take_turn(NEVER_NS)

    @property
    def muted(self) -> bool:
        """Whether no request is answered now."""
        return self.pending is not None or self.writing_paused or self.closing

    def receive_rest(self) -> None:
        """Let a `LargeFrame` receive the missing part of a large frame, unless the channel is muted."""
        buffer = self.buffer
        if buffer is None or len(buffer) < 4 or self.muted:
            return
        self.receive_large(unpack_length(buffer)[0] + 4, buffer)

    def limit_read_ahead(self) -> None:
        """Stop reading while enough bytes wait; start again afterwards."""
        self.count()
        size, muted = 0 if self.buffer is None else len(self.buffer), self.muted
        if size > READ_AHEAD_BYTES and (muted or self.has_request()):
            self.stop_reading(Pause.BACKLOG)
        elif self.not_reading and (muted or not self.has_request() or self.turns.may_read()):
            self.read_again(Pause.BACKLOG)

    def holds_one_request(self, buffer: bytes | bytearray) -> bool:
        """Whether a buffer is one whole request."""
        size = len(buffer) - 4
        return size >= 0 and unpack_length(buffer)[0] == size <= self.max_request_bytes

    def has_request(self) -> bool:
        """Whether the buffer begins with a whole request."""
        buffer = self.buffer
        return buffer is not None and len(buffer) >= 4 and unpack_length(buffer)[0] <= len(buffer) - 4

    def stop_reading(self, reason: int) -> None:
        """Stop reading until `read_again` is called for this reason and no other one is left."""
        if not self.not_reading and not self.closing:
            self.transport.pause_reading()
        self.not_reading |= reason

    def read_again(self, reason: int) -> None:
        """Take a reason to stop away; read if there is no other one."""
        if self.not_reading & reason:
            self.not_reading ^= reason
            if not self.not_reading and not self.closing:
                self.transport.resume_reading()
