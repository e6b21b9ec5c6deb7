"""One connection: frames in, answers out, in order.

Requests of a connection are answered one after the other, as Kafka does: while an answer is pending the
channel is *muted*, its further requests wait as bytes. So it is while the client is throttled. Reading goes
on up to `READ_AHEAD_BYTES`, so that a client that leaves is noticed.

The hot path is a chunk that holds exactly one frame: it is parsed where it lies, answered by a plain call and
written, without a task, a queue or a copy. The answers to a chunk of several frames are written together,
for a write costs more than most answers. The rest of a large frame is received by a `LargeFrame`.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from typing import TYPE_CHECKING

from odradek.broker.dispatch.routing import CloseConnection, PendingAnswer
from odradek.broker.dispatch.throttling import Throttled
from odradek.plugin.context import ConnectionContext
from odradek.server.sockets.large_frame import LargeFrame
from odradek.wire.errors import WireError

if TYPE_CHECKING:
    from odradek.server.sockets.listener import Listener

log = logging.getLogger(__name__)

FRAME_LENGTH = struct.Struct(">i")
unpack_length = FRAME_LENGTH.unpack_from
READ_AHEAD_BYTES = 65_536
WRITTEN_TOGETHER = 16
WRITTEN_TOGETHER_BYTES = 65_536
"""Bounds of what is held back for one write: that many answers, none of which is larger."""
LARGE_FRAME_BYTES = 65_536
TURN_NS = 2_000_000
"""How long a chunk of many requests may keep the loop to itself; the others behind it wait for a turn."""


class Channel(asyncio.Protocol):
    """The host's end of one connection."""

    __slots__ = (
        "answer", "answers", "buffer", "closing", "context", "last_active_ms", "listener",
        "max_request_bytes", "monotonic_ns", "now_ms", "pending", "reading_paused", "transport",
        "turn_over", "writing_paused",
    )  # fmt: skip

    transport: asyncio.Transport
    context: ConnectionContext

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.answer = listener.dispatcher.answer
        self.buffer: bytearray | None = None
        """Bytes that are not answered yet; None when there are none."""
        self.answers: list[bytes] | None = None
        """Answers to write together; None while each is written at once."""
        self.pending: PendingAnswer | Throttled | None = None
        """Why the channel is muted: an answer that comes later, or one that throttles."""
        self.writing_paused = False
        self.reading_paused = False
        self.closing = False
        self.turn_over = False
        """What the buffer holds waits for a turn of its own, which is coming."""
        self.last_active_ms = 0
        self.max_request_bytes = listener.max_request_bytes
        self.now_ms = listener.clock.now_ms
        self.monotonic_ns = listener.clock.monotonic_ns

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # uvloop's do not inherit Transport
        self.context = self.listener.opened(self, self.transport)
        self.last_active_ms = self.listener.clock.now_ms()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        self.buffer = None
        if self.pending is not None:
            self.pending.lost()
            self.pending = None
        self.listener.closed(self)

    def data_received(self, data: bytes) -> None:
        if self.closing:
            return
        self.last_active_ms = self.now_ms()
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
        self.pump()

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
                if answer.__class__ is Throttled:
                    self.throttle(answer)
                else:
                    self.wait_for(answer)  # type: ignore[arg-type]

    def write_together(self, answer: bytes) -> None:
        """Hold an answer back until the chunk is through, unless that is too much to hold."""
        answers = self.answers
        assert answers is not None
        answers.append(answer)
        if len(answer) > WRITTEN_TOGETHER_BYTES or len(answers) >= WRITTEN_TOGETHER:
            self.write_answers()

    def write_answers(self) -> None:
        """Write what was held back."""
        if self.answers:
            self.transport.write(b"".join(self.answers))
            self.answers.clear()

    def receive_large(self, frame_bytes: int, beginning: bytes | bytearray) -> bool:
        """Let the rest of a large frame be received by a `LargeFrame`; False if it is not large."""
        if not (LARGE_FRAME_BYTES <= frame_bytes - 4 <= self.max_request_bytes):
            return False
        if len(beginning) >= frame_bytes or self.reading_paused:
            return False
        LargeFrame(self, frame_bytes, beginning).take_over(self.transport)
        return True

    def large_frame_received(self, frame: bytearray) -> None:
        """A large frame is whole, and nothing behind it has been read."""
        self.buffer = frame
        self.pump()

    def pump(self) -> None:
        """Answer what the buffer holds, as long as nothing holds the channel up."""
        buffer = self.buffer
        if buffer is None or self.turn_over:
            self.limit_read_ahead()
            return
        start, end = 0, len(buffer)
        self.answers = []
        until_ns = self.monotonic_ns() + TURN_NS
        while not (self.pending or self.writing_paused or self.closing) and end - start >= 4:
            if self.monotonic_ns() > until_ns:
                self.turn_over = True
                self.listener.loop.call_soon(self.next_turn)
                break
            (size,) = unpack_length(buffer, start)
            if size < 0 or size > self.max_request_bytes:
                self.refuse(f"a frame of {size} bytes, the limit is {self.max_request_bytes}")
                break
            if end - start - 4 < size:
                break
            if start == 0 and size == end - 4:
                # the buffer is the frame: hand it over whole, views into it may outlive this call
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

    def next_turn(self) -> None:
        """Go on with the buffer, now that the other connections had their turn."""
        self.turn_over = False
        self.pump()

    def receive_rest(self) -> None:
        """Let a `LargeFrame` receive what is missing of one, unless the channel is held up."""
        buffer = self.buffer
        if buffer is None or len(buffer) < 4 or self.pending or self.writing_paused or self.closing:
            return
        if self.receive_large(unpack_length(buffer)[0] + 4, buffer):
            self.buffer = None

    def limit_read_ahead(self) -> None:
        """Stop reading while a channel that is held up holds enough; start again when it does not."""
        if self.closing:
            return
        held = self.buffer is not None and len(self.buffer) > READ_AHEAD_BYTES
        pause = held and (self.pending is not None or self.writing_paused or self.turn_over)
        if pause and not self.reading_paused:
            self.reading_paused = True
            self.transport.pause_reading()
        elif not pause and self.reading_paused:
            self.reading_paused = False
            self.transport.resume_reading()

    def wait_for(self, answer: PendingAnswer) -> None:
        """Mute the channel until the answer is there."""
        self.pending = answer
        answer.when_done(self.resume)

    def resume(self, answer: bytes | Throttled) -> None:
        """The pending answer came: write it and go on with the requests behind it; if empty, close."""
        self.pending = None
        if not answer:
            self.close()
        elif isinstance(answer, Throttled):
            self.throttle(answer)
            if self.listener.draining:
                self.close()
        else:
            self.transport.write(answer)
            self.go_on()

    def throttle(self, answer: Throttled) -> None:
        """Write an answer, and mute the channel until its client may go on."""
        if answer.frame is not None:
            self.transport.write(answer.frame)
        self.pending = answer
        answer.on_end = self.unmute

    def unmute(self) -> None:
        """The client is no longer throttled."""
        self.pending = None
        self.go_on()

    def go_on(self) -> None:
        """Take the requests that have come while the channel was muted."""
        self.last_active_ms = self.now_ms()
        if self.listener.draining:
            self.close()
        elif self.buffer is not None:
            # in a turn of its own: a chain of answered requests must not grow the stack
            self.listener.loop.call_soon(self.pump)
        elif self.reading_paused:
            self.limit_read_ahead()

    def pause_writing(self) -> None:
        self.writing_paused = True

    def resume_writing(self) -> None:
        self.writing_paused = False
        self.pump()
        self.limit_read_ahead()

    def refuse(self, why: str) -> None:
        """The bytes are bad: nothing that follows can be trusted."""
        self.listener.refused += 1
        log.info("closing a connection: %s", why, extra={"connection": self.context.connection_id})
        self.close()

    def drain(self) -> None:
        """Close once the pending answer, if there is one, has been written: a push must not go unanswered,
        its client would never push again. Who is throttled has the answer.
        """
        if self.pending is None or isinstance(self.pending, Throttled):
            self.close()
        elif self.pending.deferred.hurry is not None:
            self.pending.deferred.hurry()

    def close(self) -> None:
        """Close after what was written has been sent."""
        self.write_answers()
        self.closing = True
        self.buffer = None
        self.transport.close()

    def idle_since_ms(self) -> int | None:
        """When the client was last active; None while it waits for an answer or is throttled.

        Where a throttled channel is not read, nobody notices that its client has left: it may be idle, as any
        throttled one may in Kafka.
        """
        if self.pending is None or self.closing:
            return self.last_active_ms
        if self.reading_paused and isinstance(self.pending, Throttled):
            return self.last_active_ms
        return None
