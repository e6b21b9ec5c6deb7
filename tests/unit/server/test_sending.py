"""Answers that are read from files while they are sent, through a channel with a recording transport."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field

import pytest

from odradek.broker.dispatch.dispatcher import Answer
from odradek.deferred import Deferred
from odradek.server.sockets.channel import Channel
from odradek.server.sockets.sending import PIECE_BYTES, PIECES_PER_TURN
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.parts import Parts
from support.channels import EchoDispatcher, RecordingTransport, ScriptedListener, framed

LARGE = PIECE_BYTES * 3


class Slice:
    """A slice of a file of `LARGE` bytes, or what is left of it."""

    def __init__(self, left: int = LARGE) -> None:
        self.content = bytes(range(256)) * (LARGE // 256)
        self.left = left
        self.reads: list[int] = []

    def __len__(self) -> int:
        return LARGE

    def __bytes__(self) -> bytes:
        return self.content

    def read(self, start: int, length: int) -> bytes:
        self.reads.append(length)
        return self.content[start : min(start + length, self.left)]


class FullTransport(RecordingTransport):
    """Takes one write, then asks to pause until `drain`."""

    def __init__(self) -> None:
        super().__init__()
        self.channel: Channel | None = None
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        if self.channel is not None:
            self.channel.pause_writing()

    def abort(self) -> None:
        self.aborted = True

    def drain(self) -> None:
        assert self.channel is not None
        self.channel.resume_writing()


@dataclass
class SliceDispatcher(EchoDispatcher):
    """Answers ``slice`` with a `Slice` between two texts."""

    slices: list[Slice] = field(default_factory=list)

    def answer(self, frame: bytes | memoryview, offset: int, connection: object) -> Answer:
        if bytes(frame[offset:]) != b"slice":
            return super().answer(frame, offset, connection)
        self.slices.append(Slice())
        return Parts([b"<", self.slices[-1], b">"])


@pytest.fixture
def listener() -> ScriptedListener:
    return ScriptedListener(dispatcher=SliceDispatcher())


def connected(listener: ScriptedListener, *, full: bool = False) -> tuple[Channel, FullTransport]:
    channel, transport = Channel(listener), FullTransport()
    channel.connection_made(transport)
    transport.channel = channel if full else None
    return channel, transport


def reads(listener: ScriptedListener) -> list[int]:
    assert isinstance(listener.dispatcher, SliceDispatcher)
    return [length for each in listener.dispatcher.slices for length in each.reads]


WHOLE = b"<" + bytes(Slice()) + b">"


def test_a_fast_reader_gets_the_answer_at_once(listener: ScriptedListener) -> None:
    channel, transport = connected(listener)

    channel.data_received(framed(b"a", b"slice", b"b"))
    listener.run_turns()

    assert transport.written == b"<a>" + WHOLE + b"<b>"
    assert max(reads(listener)) <= PIECE_BYTES
    assert channel.pending is None


def test_a_slow_reader_costs_one_piece(listener: ScriptedListener) -> None:
    channel, transport = connected(listener, full=True)

    channel.data_received(framed(b"slice", b"b"))
    listener.run_turns()

    assert len(transport.written) == PIECE_BYTES
    assert sum(reads(listener)) < PIECE_BYTES


def test_a_slow_reader_gets_the_rest_as_it_reads_and_then_the_next_answer(listener: ScriptedListener) -> None:
    channel, transport = connected(listener, full=True)
    channel.data_received(framed(b"slice", b"b"))

    for _ in range(5):
        transport.drain()
        listener.run_turns()

    assert transport.written == WHOLE + b"<b>"
    assert channel.pending is None


def test_the_memory_of_an_unread_answer_is_what_the_transport_holds_and_what_was_read_at_once(
    listener: ScriptedListener,
) -> None:
    channel, transport = connected(listener, full=True)
    transport.unsent = 1_000

    channel.send(Parts([b"x" * 10, Slice(), b"y" * 20_000]))

    assert listener.memory.answers.total_bytes == 21_000


def test_requests_wait_while_an_answer_is_sent(listener: ScriptedListener) -> None:
    channel, _ = connected(listener, full=True)

    channel.data_received(framed(b"slice"))
    channel.data_received(framed(b"b"))

    assert listener.dispatcher.seen == []


def test_other_connections_have_their_turn_while_a_large_answer_is_sent(listener: ScriptedListener) -> None:
    channel, transport = connected(listener)
    answer = Parts([Slice() for _ in range(PIECES_PER_TURN)])

    channel.send(answer)
    sent = len(transport.written)
    listener.run_turns()

    assert sent == PIECES_PER_TURN * PIECE_BYTES < len(answer)
    assert transport.written == bytes(answer)
    assert channel.pending is None


def test_a_deferred_answer_may_be_slices(listener: ScriptedListener) -> None:
    channel, transport = connected(listener, full=True)
    channel.data_received(framed(b"later", b"b"))
    listener.run_turns()
    listener.dispatcher.deferred[0].complete(Parts([b"<", Slice(), b">"]))

    for _ in range(5):
        transport.drain()
        listener.run_turns()

    assert transport.written == WHOLE + b"<b>"


@pytest.mark.parametrize("error", [True, False], ids=["cannot be read", "has lost its end"])
def test_a_file_that_fails_closes_the_connection(
    listener: ScriptedListener, error: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Slice):
        def read(self, start: int, length: int) -> bytes:
            if error:
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "cannot read")
            return super().read(start, length)

    channel, transport = connected(listener)

    channel.send(Parts([b"<", Failing(left=10)]))
    listener.run_turns()

    assert transport.aborted
    assert channel.closing
    assert "its answer cannot be read" in caplog.text


def test_a_client_that_never_reads_is_idle(listener: ScriptedListener) -> None:
    channel, transport = connected(listener, full=True)
    channel.data_received(framed(b"slice"))
    asked_ms = listener.clock.monotonic_ms()
    listener.clock.advance(1_000)
    idle_since = [channel.idle_since_ms()]
    transport.drain()
    idle_since.append(channel.idle_since_ms())

    assert idle_since == [asked_ms, asked_ms + 1_000]


def test_a_stopping_host_sends_the_whole_answer(listener: ScriptedListener) -> None:
    channel, transport = connected(listener, full=True)
    channel.data_received(framed(b"slice"))
    listener.draining = True
    channel.drain()
    closed = [transport.closed]

    for _ in range(4):
        transport.drain()
    closed.append(transport.closed)

    assert closed == [False, True]
    assert transport.written == WHOLE


def test_a_lost_connection_lets_the_files_go(listener: ScriptedListener) -> None:
    channel, _ = connected(listener, full=True)
    part = Slice()
    alive = weakref.ref(part)
    gc.disable()
    try:
        channel.send(Parts([part]))
        del part
        while_sent = alive() is not None
        channel.connection_lost(None)
        assert while_sent
        assert alive() is None
    finally:
        gc.enable()


def test_an_answer_that_is_lost_before_it_is_known_lets_the_files_go(listener: ScriptedListener) -> None:
    channel, _ = connected(listener)
    deferred: Deferred[Parts] = Deferred()
    part = Slice()
    alive = weakref.ref(part)
    channel.begin(deferred)
    channel.connection_lost(None)

    deferred.complete(Parts([part]))
    del part, deferred

    assert alive() is None
