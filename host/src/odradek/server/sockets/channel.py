"""One connection: frames in, answers out, in order.

The requests of a connection are answered one after the other, as in Kafka: while an answer is pending, or the
client is throttled, the channel is *muted* and further requests wait as bytes. Reading goes on up to
`READ_AHEAD_BYTES`, so that the host notices when the client leaves.

The hot path is a chunk that holds exactly one frame: it is parsed in place, answered by a plain call and
written, without a task, a queue or a copy. Several frames wait for the connection's turn (`Turns`); the
answers of a turn are written together, because a write costs more than most answers. The rest of a large
frame is received by a `LargeFrame`. An answer with records that are still in files is a `Sending`: it is read
piece by piece, as the client takes it.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from mmap import mmap
from typing import Any, cast

from odradek.broker.dispatch.routes import CloseConnection
from odradek.broker.dispatch.throttling import Throttled
from odradek.deferred import Deferred
from odradek.plugin.context import ConnectionContext
from odradek.server.sockets.channel_owner import ChannelOwner
from odradek.server.sockets.held_bytes import COUNTED_BYTES
from odradek.server.sockets.large_frame import large_frame, switch
from odradek.server.sockets.sending import Sending
from odradek.wire.api_error import ApiError
from odradek.wire.errors import WireError
from odradek.wire.parts import Parts

log = logging.getLogger(__name__)

FRAME_LENGTH = struct.Struct(">i")
unpack_length = FRAME_LENGTH.unpack_from
READ_AHEAD_BYTES = 65_536
WRITTEN_TOGETHER = 16
WRITTEN_TOGETHER_BYTES = 65_536
"""How many answers are held back for one write, and how large each may be."""
LARGE_FRAME_BYTES = 65_536
NEVER_NS = 1 << 63
BACKLOG = 1
"""A reason to stop reading: enough requests wait for their turn, for an answer or for the client to read."""


class Channel(asyncio.Protocol):
    """The host's end of one connection."""

    __slots__ = (
        "answer", "answers", "buffer", "closing", "context", "counted_bytes", "frame_bytes", "in_ring",
        "last_active_ms", "max_request_bytes", "missing_bytes", "monotonic_ms", "not_reading", "owner",
        "pending", "transport", "turns", "writing_paused",
    )  # fmt: skip

    transport: asyncio.Transport
    context: ConnectionContext

    def __init__(self, owner: ChannelOwner) -> None:
        self.owner = owner
        self.answer = owner.dispatcher.answer
        self.buffer: bytearray | None = None
        """Bytes that are not answered yet; None if there are none."""
        self.frame_bytes = 0
        """Size of the request that a `LargeFrame` receives, or of a large one that is answered later."""
        self.missing_bytes = 0
        """What a `LargeFrame` has not received yet."""
        self.counted_bytes = 0
        """What the host's `Memory` knows of the request and the buffer."""
        self.answers: list[bytes] | None = None
        """Answers to write together; None while each is written at once."""
        self.pending: Deferred[Any] | Throttled | Sending | None = None
        """Why the channel is muted: an answer that comes later or is being sent, or a throttled client."""
        self.writing_paused = False
        self.not_reading = 0
        """The reasons why the transport does not read, one bit each; see `stop_reading`."""
        self.closing = False
        self.turns = owner.turns
        self.in_ring = False
        self.last_active_ms = 0
        self.max_request_bytes = owner.max_request_bytes
        self.monotonic_ms = owner.clock.monotonic_ms

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # uvloop's do not inherit Transport
        self.context = self.owner.opened(self, self.transport)
        self.last_active_ms = self.monotonic_ms()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        self.buffer = None
        if self.pending is not None:
            self.pending.lost()
            self.pending = None
        self.frame_bytes = self.missing_bytes = 0
        self.count()
        self.owner.memory.answers.hold(self, 0)
        self.owner.closed(self)

    def data_received(self, data: bytes) -> None:
        if self.closing:
            return
        self.last_active_ms = self.monotonic_ms()
        if self.buffer is None and self.pending is None and not self.writing_paused:
            size = len(data)
            if size >= 4:
                frame_bytes = unpack_length(data)[0] + 4
                if frame_bytes == size and size - 4 <= self.max_request_bytes:
                    self.exchange(data, 4)
                    return
                if frame_bytes > size and self.receive_large(frame_bytes, data):
                    return
        if self.buffer is None:
            self.buffer = bytearray(data)
        else:
            self.buffer += data
        self.take_in()

    def exchange(self, frame: bytes | memoryview, offset: int) -> None:
        """Answer one request: write the answer, or remember that it comes later."""
        try:
            answer = self.answer(frame, offset, self.context)
        except WireError as error:
            self.refuse(str(error))
        except CloseConnection as error:
            log.debug(
                "closing a connection", extra={"connection": self.context.connection_id, "why": str(error)}
            )
            self.close()
        else:
            if answer.__class__ is bytes:
                if self.answers is None:
                    self.transport.write(answer)
                else:
                    self.write_together(answer)
            elif answer is not None:
                self.write_answers()
                self.begin(answer, len(frame))  # type: ignore[arg-type]  # not bytes

    def begin(self, answer: Parts | Throttled | Deferred[Any], frame_bytes: int = 0) -> None:
        """Mute the channel until the answer is sent, or its client may go on."""
        if isinstance(answer, Deferred):
            self.pending = answer
            if frame_bytes >= COUNTED_BYTES:
                self.frame_bytes = frame_bytes
                self.count()
            answer.when_done(self.resume)
        elif isinstance(answer, Parts):
            self.send(answer)
        else:
            self.throttle(answer)

    def write_together(self, answer: bytes) -> None:
        """Hold an answer back until the whole chunk is answered, or the limits are reached."""
        answers = self.answers
        assert answers is not None
        answers.append(answer)
        if len(answer) > WRITTEN_TOGETHER_BYTES or len(answers) >= WRITTEN_TOGETHER:
            self.write_answers()

    def write_answers(self) -> None:
        """Write the answers that were held back."""
        if self.answers:
            self.transport.write(b"".join(self.answers))
            self.answers.clear()

    def receive_large(self, frame_bytes: int, beginning: bytes | bytearray) -> bool:
        """Let a `LargeFrame` receive the rest of a large frame; False if the frame is not large."""
        if not (LARGE_FRAME_BYTES <= frame_bytes - 4 <= self.max_request_bytes):
            return False
        if len(beginning) >= frame_bytes or self.not_reading:
            return False
        large_frame(self, frame_bytes, beginning, self.owner.shared_buffer).take_over(self.transport)
        self.buffer = None
        self.large_frame_grew(len(beginning), frame_bytes - len(beginning))
        return True

    def large_frame_grew(self, size_bytes: int, missing_bytes: int) -> None:
        """Count what has arrived of a large frame."""
        self.frame_bytes, self.missing_bytes = size_bytes, missing_bytes
        self.count()

    def count(self) -> None:
        """Count the bytes of requests that this connection holds."""
        held = self.frame_bytes + (0 if self.buffer is None else len(self.buffer))
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

    def take_turn(self, end_ns: int) -> bool:
        """Send more of an answer, or answer requests in the buffer until one mutes the channel or the turn is
        over; see `TurnTaker`.
        """
        sent = self.send_more()
        buffer, turns = self.buffer, self.turns
        if buffer is None:
            return sent
        start, end, answered = 0, len(buffer), 0
        self.answers = []
        while not (self.pending or self.writing_paused or self.closing) and end - start >= 4:
            (size,) = unpack_length(buffer, start)
            if size < 0 or size > self.max_request_bytes:
                self.refuse(f"a frame of {size} bytes, the limit is {self.max_request_bytes}")
                break
            if end - start - 4 < size:
                break
            if answered and (
                answered >= turns.most_requests or start >= turns.most_bytes or turns.monotonic_ns() >= end_ns
            ):
                turns.used_up += 1
                break
            answered += 1
            if start == 0 and size == end - 4:
                # the buffer is the frame: hand it over, because views into it may outlive this call
                self.buffer = None
                self.exchange(memoryview(buffer), 4)
                break
            with memoryview(buffer) as view, view[start + 4 : start + 4 + size] as cut:
                frame = bytes(cut)
            start += 4 + size
            self.exchange(frame, 0)
        self.write_answers()
        self.answers = None
        if self.buffer is not None:
            del buffer[:start]
            self.buffer = buffer or None
        self.limit_read_ahead()
        self.receive_rest()
        return sent or answered > 0

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
            self.stop_reading(BACKLOG)
        elif self.not_reading and (muted or not self.has_request() or self.turns.may_read()):
            self.read_again(BACKLOG)

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

    def send(self, answer: bytes | Parts) -> None:
        """Write an answer. If that takes longer, the channel is muted meanwhile."""
        if isinstance(answer, bytes):
            self.transport.write(answer)
            return
        self.pending = Sending(answer)
        if self.has_sent(self.pending):
            self.pending = None

    def has_sent(self, sending: Sending) -> bool:
        """Write more of an answer, as much as the transport takes; True if that was the rest."""
        self.last_active_ms = self.monotonic_ms()
        try:
            sending.write_to(self, scarce=self.owner.memory.answers.is_exceeded)
        except ApiError as error:
            log.error(
                "closing a connection: its answer cannot be read",
                extra={"connection": self.context.connection_id, "why": str(error)},
            )
            self.abort()
            return False
        if sending.left and not self.writing_paused:
            self.turns.join(self)
        return not sending.left

    def send_more(self) -> bool:
        """Continue with the answer that is being sent; False if there is none, or the client has to read."""
        if not isinstance(self.pending, Sending) or self.writing_paused or self.closing:
            return False
        if self.has_sent(self.pending):
            self.unmute()
        return True

    def resume(self, answer: bytes | Parts | Throttled | None) -> None:
        """Write the pending answer, if there is one, and take the next requests; if it is empty, close."""
        self.pending = None
        if self.frame_bytes:
            self.frame_bytes = 0
            self.count()
        if answer is None:
            self.go_on()
        elif not answer:
            self.close()
        elif isinstance(answer, Throttled):
            self.throttle(answer)
            if self.owner.draining:
                self.close()
        else:
            self.send(answer)
            if self.pending is None:
                self.go_on()

    def throttle(self, answer: Throttled) -> None:
        """Write an answer, and mute the channel until the throttle time is over."""
        if answer.frame is not None:
            # the empty response of a fetch; a whole one only if a quota was set while it was read
            self.transport.write(bytes(answer.frame))
        self.pending = answer
        answer.begin(self.unmute)

    def unmute(self) -> None:
        """The client is no longer throttled, or has its answer."""
        self.pending = None
        self.go_on()

    def go_on(self) -> None:
        """Take the requests that came while the channel was muted."""
        self.last_active_ms = self.monotonic_ms()
        if self.owner.draining:
            self.close()
        elif self.buffer is not None:
            # in its turn: a chain of answered requests must not grow the stack
            self.turns.join(self)
        elif self.not_reading:
            self.limit_read_ahead()

    def pause_writing(self) -> None:
        self.writing_paused = True
        self.owner.memory.answers.hold(self, self.unsent_bytes())

    def unsent_bytes(self) -> int:
        """What the transport holds, because the client has not read it yet."""
        return self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        self.writing_paused = False
        self.owner.memory.answers.hold(self, 0)
        self.send_more()
        if self.buffer is not None:
            self.turns.join(self)
        self.limit_read_ahead()

    def refuse(self, why: str) -> None:
        """Close because the bytes are bad: nothing that follows can be trusted."""
        self.owner.refused += 1
        self.owner.refused_log.write(
            logging.INFO,
            self.monotonic_ms(),
            "closing a connection: %s",
            why,
            connection=self.context.connection_id,
        )
        self.close()

    def drain(self) -> None:
        """Close once the pending answer, if there is one, has been written: a client whose push is never
        answered never pushes again. A throttled client already has its answer.
        """
        if self.pending is None or isinstance(self.pending, Throttled):
            self.close()
        elif self.pending.hurry is not None:
            self.pending.hurry()

    def close(self) -> None:
        """Close after everything written has been sent."""
        self.write_answers()
        self.closing = True
        self.buffer = None
        self.transport.close()

    def abort(self) -> None:
        """Close without sending the rest."""
        self.closing = True
        self.transport.abort()

    def idle_since_ms(self) -> int | None:
        """When the client was last active, or took a part of its answer; None while it waits for an answer
        or is throttled.

        While a throttled channel is not read, the host cannot notice that its client has left: such a channel
        counts as idle, as any throttled one does in Kafka.
        """
        if self.pending is None or self.closing or isinstance(self.pending, Sending):
            return self.last_active_ms
        if self.not_reading and isinstance(self.pending, Throttled):
            return self.last_active_ms
        return None
