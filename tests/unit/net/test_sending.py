"""Answers that are read from files while they are sent, through a channel with a recording transport."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.broker.dispatch.dispatcher import Answer
from odradek.net.channel import Channel
from odradek.net.sending import LARGE_SLICE_BYTES, PIECE_BYTES, TURN_BYTES, WAITING_BYTES, Sending
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.parts import Parts, RecordSlice
from support.channels import EchoDispatcher, RecordingTransport, ScriptedListener, framed

LARGE = PIECE_BYTES * 3


class Slice(RecordSlice):
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
    answer = Parts([Slice() for _ in range(1 + TURN_BYTES // LARGE)])

    channel.send(answer)
    sent = len(transport.written)
    listener.run_turns()

    assert sent == TURN_BYTES < len(answer)
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


class Kernel:
    """Takes what slices send to the socket of a transport, up to a limit."""

    def __init__(self, transport: PlainTransport, room: int = 1 << 30) -> None:
        self.transport, self.room = transport, room

    def take(self, content: bytes) -> int:
        if not self.room:
            raise BlockingIOError
        taken = content[: self.room]
        self.room -= len(taken)
        self.transport.written += taken
        return len(taken)


class PlainTransport(FullTransport):
    """Has a socket, and pauses the channel as it is told; what it does not pause it has written."""

    def __init__(self, **info: Any) -> None:
        super().__init__()
        self.info: dict[str, Any] = {"socket": self} | info
        self.high = 0
        self.is_lost = False

    def fileno(self) -> int:
        return 7

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.info.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high or 0

    def is_closing(self) -> bool:
        return self.is_lost

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_lost:
            super().write(data)


@dataclass
class SentSlice(RecordSlice):
    """A slice that a `Kernel` can send."""

    kernel: Kernel
    content: bytes = bytes(range(256)) * (LARGE // 256)
    fails: Callable[[], Exception] | None = None
    read_bytes: int = 0

    def __len__(self) -> int:
        return len(self.content)

    def __bytes__(self) -> bytes:
        return self.content

    def read(self, start: int, length: int) -> bytes:
        if self.fails is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "cannot read")
        self.read_bytes += length
        return self.content[start : start + length]

    def send_to(self, socket: int, start: int, length: int) -> int:
        assert socket == 7
        if self.fails is not None:
            raise self.fails()
        return self.kernel.take(self.content[start : start + length])


def plain(listener: ScriptedListener, **info: Any) -> tuple[Channel, PlainTransport]:
    channel, transport = Channel(listener), PlainTransport(**info)
    channel.connection_made(transport)
    return channel, transport


def test_the_kernel_sends_a_large_slice_between_the_bytes_around_it(listener: ScriptedListener) -> None:
    channel, transport = plain(listener)
    part = SentSlice(Kernel(transport))

    channel.send(Parts([b"<", part, b">"]))

    assert transport.written == b"<" + part.content + b">"
    assert part.read_bytes == 0
    assert channel.pending is None


def test_a_transport_holds_nothing_while_the_kernel_sends(listener: ScriptedListener) -> None:
    channel, transport = plain(listener)
    part = SentSlice(Kernel(transport, room=0))
    transport.channel = channel

    channel.send(Parts([part, b">"]))
    meanwhile = transport.high
    part.kernel.room, transport.channel = LARGE, None
    channel.resume_writing()

    assert (meanwhile, transport.high > 0) == (0, True)
    assert transport.written == part.content + b">"


def test_a_full_socket_costs_a_few_bytes(listener: ScriptedListener) -> None:
    channel, transport = plain(listener)
    part = SentSlice(Kernel(transport, room=LARGE // 2))
    channel.send(Parts([b"<"]))
    transport.channel = channel

    channel.send(Parts([part]))

    assert transport.written == b"<" + part.content[: LARGE // 2 + WAITING_BYTES]
    assert part.read_bytes == WAITING_BYTES


def test_small_slices_are_read_and_written_together(listener: ScriptedListener) -> None:
    channel, transport = plain(listener)
    kernel = Kernel(transport)
    small = [SentSlice(kernel, b"x" * (LARGE_SLICE_BYTES - 1)), SentSlice(kernel, b"y" * 10)]
    large = SentSlice(kernel)

    channel.send(Parts([b"<", small[0], b"=", small[1], b"=", large]))

    assert transport.written == b"<" + small[0].content + b"=" + small[1].content + b"=" + large.content
    assert transport.writes == 1


def test_a_connection_with_tls_gets_what_was_read(listener: ScriptedListener) -> None:
    channel, transport = plain(listener, ssl_object=object())
    part = SentSlice(Kernel(transport))

    channel.send(Parts([b"<", part]))

    assert part.read_bytes == LARGE
    assert transport.written == b"<" + part.content


def test_other_connections_have_their_turn_while_the_kernel_sends(listener: ScriptedListener) -> None:
    channel, transport = plain(listener)
    answer = Parts([SentSlice(Kernel(transport)) for _ in range(1 + TURN_BYTES // LARGE)])

    channel.send(answer)
    sent = len(transport.written)
    listener.run_turns()

    assert sent == TURN_BYTES < len(answer)
    assert transport.written == bytes(answer)


def test_nothing_follows_what_a_closing_transport_drops(listener: ScriptedListener) -> None:
    channel, transport = plain(listener)
    parts = [SentSlice(Kernel(transport, room=100)), SentSlice(Kernel(transport))]
    sending = Sending(Parts(parts), transport.fileno())
    transport.channel = channel
    sending.write_to(channel, scarce=False)
    sent = transport.written

    transport.is_lost, channel.writing_paused = True, False
    parts[0].kernel.room = LARGE
    sending.write_to(channel, scarce=False)

    assert transport.written == sent


@pytest.mark.parametrize("error", [OSError(5, "input/output error"), ApiError(ErrorCode.KAFKA_STORAGE_ERROR)])
def test_a_file_that_the_kernel_cannot_read_closes_the_connection(
    listener: ScriptedListener, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    channel, transport = plain(listener)

    channel.send(Parts([SentSlice(Kernel(transport), fails=lambda: error)]))

    assert transport.aborted
    assert "its answer cannot be read" in caplog.text


def test_a_file_that_has_lost_its_end_closes_the_connection_too(
    listener: ScriptedListener, caplog: pytest.LogCaptureFixture
) -> None:
    class Shorter(SentSlice):
        def __len__(self) -> int:
            return LARGE + 10

    channel, transport = plain(listener)

    channel.send(Parts([Shorter(Kernel(transport)), b">"]))

    assert transport.aborted
    assert "shorter than when it was read" in str(caplog.records[-1].__dict__["why"])
