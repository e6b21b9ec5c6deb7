"""One connection: frames in, answers out, in order.

The requests of a connection are answered one after the other, as in Kafka: while an answer is pending, or the
client is throttled, the channel is *muted* and further requests wait as bytes (`RequestReader`).

The hot path is a chunk that holds exactly one frame: it is parsed in place, answered by a plain call and
written, without a task, a queue or a copy. Several frames wait for the connection's turn, and so does one if
the loop is busy and the connection has used more than its share of it (`Turns`). The answers of a turn are
written together, because a write costs more than most answers. The rest of a large frame is received by a
`LargeFrame`. An answer with records that are still in files is a `Sending`: it is read piece by piece, as the
client takes it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from odradek.broker.dispatch.routes import CloseConnection
from odradek.broker.dispatch.throttling import Throttled
from odradek.net.channel_owner import ChannelOwner
from odradek.net.held_bytes import COUNTED_BYTES
from odradek.net.request_reader import RequestReader, unpack_length
from odradek.net.sending import Sending, plain_socket
from odradek.plugin.context import ConnectionContext, about_client
from odradek.telemetry.goodbyes import AWAITED
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.errors import WireError
from odradek.wire.header import shown_client_id
from odradek.wire.parts import Parts

log = logging.getLogger(__name__)

WRITTEN_TOGETHER = 16
WRITTEN_TOGETHER_BYTES = 65_536
"""How many answers are held back for one write, and how large each may be."""
TLS_HANDSHAKE = 0x1603
"""How every TLS connection begins; as the length of a request it is 369 MB."""


class Channel(RequestReader):
    """The host's end of one connection."""

    __slots__ = ("answer", "answers", "context", "last_api", "pending", "writing_paused")

    context: ConnectionContext

    def __init__(self, owner: ChannelOwner) -> None:
        super().__init__(owner)
        self.answer = owner.dispatcher.answer
        self.answers: list[bytes] | None = None
        """Answers to write together; None while each is written at once."""
        self.pending: Deferred[Any] | Throttled | Sending | None = None
        """Why the channel is muted: an answer that comes later or is being sent, or a throttled client."""
        self.last_api = -1
        """The API key of the last request."""
        self.writing_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # uvloop's do not inherit Transport
        self.context = self.owner.opened(self, self.transport)
        self.last_active_ms = self.monotonic_ms()
        self.counted_since_ns = self.monotonic_ns()

    def connection_lost(self, exc: Exception | None) -> None:
        in_order = self.ends_in_order(exc)
        self.closing = True
        self.buffer = None
        if self.pending is not None:
            self.pending.lost()
            self.pending = None
        self.frame_bytes = self.missing_bytes = 0
        self.count()
        self.owner.memory.answers.hold(self, 0)
        self.owner.closed(self, in_order)

    def data_received(self, data: bytes) -> None:
        if self.closing:
            return
        now_ns = self.monotonic_ns()
        self.last_active_ms = self.monotonic_ms()
        if self.buffer is None and self.pending is None and not self.writing_paused:
            size = len(data)
            if size >= 4:
                frame_bytes = unpack_length(data)[0] + 4
                if frame_bytes == size and size - 4 <= self.max_request_bytes:
                    turns = self.turns
                    if now_ns > turns.free_until_ns and turns.must_wait(self, now_ns):
                        self.buffer = data
                        turns.join(self, single=True)
                    else:
                        self.exchange(data, 4)
                        self.used_ns += self.monotonic_ns() - now_ns
                    return
                if frame_bytes > size and self.receive_large(frame_bytes, data):
                    return
        self.append(data)
        self.take_in()

    @property
    def about(self) -> dict[str, Any]:
        return about_client(self.context)

    def exchange(self, frame: bytes | memoryview, offset: int) -> None:
        """Answer one request: write the answer, or remember that it comes later."""
        self.last_api = frame[offset + 1] if len(frame) > offset + 1 else -1  # keys fit into a byte
        try:
            answer = self.answer(frame, offset, self.context)
        except WireError as error:
            self.refuse(str(error), shown_client_id(frame, offset))
        except CloseConnection as error:
            self.close_because(str(error), shown_client_id(frame, offset))
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

    def take_turn(self, end_ns: int) -> bool:
        """Send more of an answer, or answer requests in the buffer until one mutes the channel or the turn is
        over; see `TurnTaker`.
        """
        sent = self.pending is not None and self.send_more()
        buffer = self.buffer
        if buffer is None:
            return sent
        answered = 0
        if not (self.pending is not None or self.writing_paused or self.closing):
            if self.holds_one_request(buffer):
                # the buffer is the frame: hand it over, because views into it may outlive this call
                self.buffer = None
                self.exchange(buffer if isinstance(buffer, bytes) else memoryview(buffer), 4)
                answered = 1
            else:
                answered = self.answer_requests(buffer, end_ns)
        if self.buffer is not None or self.not_reading or self.counted_bytes:
            self.limit_read_ahead()
            self.receive_rest()
        if self.leaving and not (self.muted or self.has_request()):
            self.depart()
        return sent or answered > 0

    def answer_requests(self, buffer: bytes | bytearray, end_ns: int) -> int:
        """Answer the whole requests in the buffer until one mutes the channel or the turn is over. Returns
        how many were answered.
        """
        start, end, answered, turns = 0, len(buffer), 0, self.turns
        self.answers = []
        while end - start >= 4 and not self.muted:
            (size,) = unpack_length(buffer, start)
            if size < 0 or size > self.max_request_bytes:
                self.refuse(bad_length(size, self.max_request_bytes), shown_client_id(buffer, start + 4))
                break
            if end - start - 4 < size:
                break
            if answered and (
                answered >= turns.most_requests or start >= turns.most_bytes or turns.monotonic_ns() >= end_ns
            ):
                turns.used_up += 1
                break
            answered += 1
            frame = cut(buffer, start + 4, start + 4 + size)
            start += 4 + size
            self.exchange(frame, 0)
        self.write_answers()
        self.answers = None
        if self.buffer is not None:
            self.buffer = shortened(buffer, start)
        return answered

    def send(self, answer: bytes | Parts) -> None:
        """Write an answer. If that takes longer, the channel is muted meanwhile."""
        if isinstance(answer, bytes):
            self.transport.write(answer)
            return
        self.pending = Sending(answer, plain_socket(self.transport))
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
                extra={"why": str(error), **self.about},
            )
            self.abort()
            return False
        if sending.left and not self.writing_paused:
            self.turns.join(self)
        return not sending.left

    def unsent_bytes(self) -> int:
        """Memory of the answer that the client has not read yet."""
        left = self.pending.memory_bytes if isinstance(self.pending, Sending) else 0
        return self.transport.get_write_buffer_size() + left

    def send_more(self) -> bool:
        """Continue with the answer that is being sent; False if there is none, or the client has to read."""
        if not isinstance(self.pending, Sending) or self.writing_paused or self.closing:
            return False
        if self.has_sent(self.pending):
            self.unmute()
        return True

    def resume(self, answer: bytes | Parts | Throttled | WireError | None) -> None:
        """Write the pending answer, if there is one, and take the next requests; if it is empty, close."""
        self.pending = None
        if self.frame_bytes:
            self.frame_bytes = 0
            self.count()
        if answer is None:
            self.go_on()
        elif isinstance(answer, WireError):
            self.refuse(str(answer))
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
            # the response of a throttled fetch is empty, so there is nothing to read
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
        elif self.leaving and not self.has_request():
            self.depart()
        elif self.buffer is not None:
            # in its turn: a chain of answered requests must not grow the stack
            self.turns.join(self)
        elif self.not_reading:
            self.limit_read_ahead()

    def pause_writing(self) -> None:
        self.writing_paused = True
        self.owner.memory.answers.hold(self, self.unsent_bytes())

    def resume_writing(self) -> None:
        self.writing_paused = False
        self.owner.memory.answers.hold(self, 0)
        self.send_more()
        if self.buffer is not None:
            self.turns.join(self)
        self.limit_read_ahead()

    def refuse(self, why: str, client_id: str | None = None) -> None:
        """Close because the bytes are bad: nothing that follows can be trusted."""
        self.owner.refused += 1
        self.close_because(why, client_id)

    def close_because(self, why: str, client_id: str | None) -> None:
        """Close, and say why."""
        about = about_client(self.context, client_id)
        self.owner.refused_log.write(
            logging.INFO, self.monotonic_ms(), "closing a connection: %s", why, **about
        )
        self.close()

    def drain(self) -> None:
        """Close once the pending answer, if there is one, has been written: a client whose push is never
        answered never pushes again. A throttled client already has its answer.
        """
        if self.pending is None or isinstance(self.pending, Throttled):
            self.close()
        else:
            self.hurry()

    def ends_in_order(self, exc: Exception | None) -> bool:
        """Whether the client has closed the connection, and did not wait for an answer.

        A client that closes while it is being answered resets the connection, without more: who reads needs
        no answer any more, and who writes has not read one.
        """
        if self.closing or self.torn or exc is None or self.leaving:
            return not self.closing and not self.torn
        is_reset = isinstance(exc, ConnectionResetError | BrokenPipeError)
        return is_reset and self.last_api not in AWAITED and not self.is_torn()

    def is_torn(self) -> bool:
        if self.last_api in AWAITED and (isinstance(self.pending, Deferred) or was_refused(self.transport)):
            return True
        if self.buffer is None:
            return bool(self.missing_bytes)
        from odradek.net.unanswered import waits  # seldom needed

        return waits(self.buffer)

    def hurry(self) -> None:
        pending = self.pending
        if pending is not None and not isinstance(pending, Throttled) and pending.hurry is not None:
            pending.hurry()

    def close(self) -> None:
        """Close after everything written has been sent."""
        self.write_answers()
        self.closing = True
        self.buffer = None
        self.transport.close()

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


def was_refused(transport: asyncio.BaseTransport) -> bool:
    """Whether the system of a client that is gone has refused an answer with a reset."""
    found = transport.get_extra_info("socket")
    return found is not None and bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))


def cut(buffer: bytes | bytearray, start: int, end: int) -> bytes:
    """A part of a buffer, copied once."""
    if isinstance(buffer, bytes):
        return buffer[start:end]
    with memoryview(buffer) as view, view[start:end] as part:
        return bytes(part)


def shortened(buffer: bytes | bytearray, start: int) -> bytearray | None:
    """A buffer without its first bytes; None if nothing is left."""
    if start == len(buffer):
        return None
    if isinstance(buffer, bytes):
        return bytearray(memoryview(buffer)[start:])
    del buffer[:start]
    return buffer


def bad_length(size: int, limit: int) -> str:
    """Say what is wrong with the length of a frame."""
    if size >> 16 == TLS_HANDSHAKE:
        return "the client speaks TLS on a listener without TLS"
    return f"a frame of {size} bytes, the limit is {limit}"
