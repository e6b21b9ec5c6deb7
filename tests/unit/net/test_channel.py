"""A channel answers requests in order, and ends as it should."""

from __future__ import annotations

import gc
import logging
import struct
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from odradek.broker.dispatch.dispatcher import Answer
from odradek.net.channel import WRITTEN_TOGETHER, Channel
from odradek.net.request_reader import READ_AHEAD_BYTES
from odradek.net.turns import ROUND_NS
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.errors import WireError
from odradek.wire.header import RequestHeader, request_header
from support.channels import (
    LIMIT,
    EchoDispatcher,
    RecordingTransport,
    ScriptedListener,
    framed,
    receive,
    transport,
    written,
)


@pytest.fixture
def listener() -> ScriptedListener:
    return ScriptedListener()


@pytest.fixture
def channel(listener: ScriptedListener) -> Channel:
    channel = Channel(listener)
    channel.connection_made(RecordingTransport())
    return channel


def test_a_chunk_that_is_one_frame_is_answered(channel: Channel) -> None:
    channel.data_received(framed(b"a"))

    assert written(channel) == b"<a>"
    assert channel.buffer is None


def test_pipelined_requests_are_answered_in_order(channel: Channel) -> None:
    receive(channel, framed(b"a", b"b", b"quiet", b"c"))

    assert written(channel) == b"<a><b><c>"


@pytest.mark.parametrize("size", [1, 3, 5, 100])
def test_frames_can_be_split_anywhere(channel: Channel, size: int) -> None:
    stream = framed(b"first", b"", b"x" * 300, b"last")

    for start in range(0, len(stream), size):
        receive(channel, stream[start : start + size])

    assert written(channel) == b"<first><><" + b"x" * 300 + b"><last>"
    assert channel.buffer is None


def test_requests_after_a_pending_answer_wait_for_it(channel: Channel, listener: ScriptedListener) -> None:
    receive(channel, framed(b"a", b"later", b"b"))
    receive(channel, framed(b"c"))
    before = written(channel)
    listener.dispatcher.deferred[0].complete(b"<later>")
    listener.run_turns()

    assert before == b"<a>"
    assert written(channel) == b"<a><later><b><c>"


def test_requests_after_a_pending_one_without_an_answer_are_answered(
    channel: Channel, listener: ScriptedListener
) -> None:
    receive(channel, framed(b"later", b"a"))

    listener.dispatcher.deferred[0].complete(None)
    listener.run_turns()

    assert written(channel) == b"<a>"
    assert not transport(channel).closed


def test_an_answer_that_already_exists_is_sent_in_order(channel: Channel, listener: ScriptedListener) -> None:
    done = Deferred[bytes]()
    done.complete(b"<now>")
    listener.dispatcher.answer = lambda *_: done  # type: ignore[method-assign]
    channel.answer = listener.dispatcher.answer  # type: ignore[assignment]

    channel.data_received(framed(b"later"))

    assert written(channel) == b"<now>"
    assert channel.pending is None


def test_a_muted_channel_reads_ahead_up_to_a_bound(channel: Channel, listener: ScriptedListener) -> None:
    channel.data_received(framed(b"later"))
    channel.data_received(framed(b"x" * READ_AHEAD_BYTES))
    paused = transport(channel).reading_paused
    listener.dispatcher.deferred[0].complete(b"<later>")
    listener.run_turns()

    assert paused
    assert not transport(channel).reading_paused
    assert written(channel).endswith(b"x>")


def test_a_client_that_does_not_read_gets_no_more_answers(
    channel: Channel, listener: ScriptedListener
) -> None:
    channel.pause_writing()
    receive(channel, framed(b"a", b"b"))
    while_paused = written(channel)
    channel.resume_writing()
    listener.run_turns()

    assert while_paused == b""
    assert written(channel) == b"<a><b>"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", -1), id="negative"),
        pytest.param(struct.pack(">i", LIMIT + 1), id="above the limit"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param(framed(b"bad"), id="refused by the codec"),
        pytest.param(framed(b"a", b"bad", b"b"), id="refused in a pipeline"),
    ],
)
def test_invalid_bytes_close_the_connection(
    channel: Channel, listener: ScriptedListener, data: bytes
) -> None:
    receive(channel, data)
    receive(channel, framed(b"after"))

    assert transport(channel).closed
    assert listener.refused == 1
    assert b"after" not in b"".join(listener.dispatcher.seen)


def test_a_request_that_turns_out_bad_later_closes_the_connection(
    channel: Channel, listener: ScriptedListener
) -> None:
    receive(channel, framed(b"later", b"next"))

    listener.dispatcher.deferred[0].complete(WireError("bad bytes"))
    listener.run_turns()

    assert transport(channel).closed
    assert (listener.refused, written(channel)) == (1, b"")
    assert listener.dispatcher.seen == [b"later"]


def test_closed_connections_are_counted_and_one_of_a_minute_is_logged(
    listener: ScriptedListener, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    for _ in range(120):
        channel = Channel(listener)
        channel.connection_made(RecordingTransport())
        channel.data_received(framed(b"bad"))
        listener.run_turns()
        listener.clock.advance(1_000)

    assert listener.refused == 120
    assert [record.getMessage() for record in caplog.records] == ["closing a connection: bad bytes"] * 2
    assert [vars(record)["unlogged"] for record in caplog.records] == [0, 59]


@pytest.mark.parametrize(
    ("body", "reason"), [(b"bad", "bad bytes"), (b"no", "no answer possible"), (bytes(LIMIT), "a frame of ")]
)
def test_a_closed_connection_is_named_with_its_client(
    channel: Channel, caplog: pytest.LogCaptureFixture, body: bytes, reason: str
) -> None:
    caplog.set_level(logging.INFO)

    channel.data_received(framed(request_header(RequestHeader(3, 9, 1, "billing"), False) + body))

    (record,) = caplog.records
    assert record.getMessage().startswith(f"closing a connection: {reason}")
    context = channel.context
    assert [vars(record)[key] for key in ("client_id", "address", "connection")] == [
        "billing",
        context.client_address,
        context.connection_id,
    ]


def test_a_frame_of_exactly_the_limit_is_answered(channel: Channel) -> None:
    channel.data_received(framed(b"x" * LIMIT))

    assert len(written(channel)) == LIMIT + 2


def test_a_handler_can_refuse_by_closing(channel: Channel, listener: ScriptedListener) -> None:
    channel.data_received(framed(b"no"))

    assert transport(channel).closed
    assert listener.refused == 0


def test_a_lost_connection_abandons_its_pending_answer(channel: Channel, listener: ScriptedListener) -> None:
    channel.data_received(framed(b"later"))
    abandoned: list[bool] = []
    listener.dispatcher.deferred[0].abandon = lambda: abandoned.append(True)
    channel.connection_lost(None)
    listener.dispatcher.deferred[0].complete(b"<late>")

    assert abandoned == [True]
    assert written(channel) == b""
    assert listener.lost == 1


def test_a_client_that_leaves_is_disconnected_in_its_turn(
    channel: Channel, listener: ScriptedListener
) -> None:
    later = channel.eof_received()
    before = transport(channel).closed
    listener.run_turns()

    assert later
    assert (before, transport(channel).closed) == (False, True)


@pytest.mark.parametrize("hurries", [True, False])
def test_what_a_client_has_sent_before_it_left_is_answered(
    channel: Channel, listener: ScriptedListener, hurries: bool
) -> None:
    receive(channel, framed(b"later fetch"))
    (fetch,) = listener.dispatcher.deferred
    if hurries:
        fetch.hurry = lambda: fetch.complete(b"<nothing new>")
    receive(channel, framed(b"push", b"quiet") + b"half")

    channel.eof_received()
    listener.run_turns()
    if not hurries:
        assert not transport(channel).closed
        fetch.complete(b"<nothing new>")
        listener.run_turns()

    assert listener.dispatcher.seen == [b"later fetch", b"push", b"quiet"]
    assert written(channel) == b"<nothing new><push>"
    assert transport(channel).closed


def test_requests_that_wait_for_their_turn_are_answered_when_their_client_leaves(
    channel: Channel, listener: ScriptedListener
) -> None:
    channel.data_received(framed(b"a", b"b"))
    channel.eof_received()
    listener.run_turns()

    assert written(channel) == b"<a><b>"
    assert transport(channel).closed


def test_draining_closes_at_once_without_a_pending_answer(channel: Channel) -> None:
    channel.drain()

    assert transport(channel).closed


def test_draining_writes_the_pending_answer_first(channel: Channel, listener: ScriptedListener) -> None:
    channel.data_received(framed(b"later"))
    listener.draining = True
    channel.drain()
    still_open = not transport(channel).closed
    listener.dispatcher.deferred[0].complete(b"<later>")

    assert still_open
    assert written(channel) == b"<later>"
    assert transport(channel).closed


def test_draining_ends_a_long_poll(channel: Channel, listener: ScriptedListener) -> None:
    channel.data_received(framed(b"later"))
    deferred = listener.dispatcher.deferred[0]
    deferred.hurry = lambda: deferred.complete(b"<early>")
    listener.draining = True
    channel.drain()

    assert written(channel) == b"<early>"
    assert transport(channel).closed


def test_a_channel_that_waits_for_an_answer_is_not_idle(channel: Channel, listener: ScriptedListener) -> None:
    channel.data_received(framed(b"a"))
    idle_since_ms = channel.idle_since_ms()
    channel.data_received(framed(b"later"))

    assert idle_since_ms == listener.clock.monotonic_ms()
    assert channel.idle_since_ms() is None


@pytest.mark.parametrize("jump_ms", [-3_600_000, 3_600_000], ids=["back", "forward"])
def test_a_channel_is_idle_since_its_last_bytes_when_the_clock_is_set(
    channel: Channel, listener: ScriptedListener, jump_ms: int
) -> None:
    listener.clock.jump(jump_ms)
    channel.data_received(framed(b"a"))
    listener.clock.advance(10)

    assert channel.idle_since_ms() == listener.clock.monotonic_ms() - 10


def test_the_answers_to_a_chunk_are_written_together_up_to_a_bound(channel: Channel) -> None:
    requests = [b"%d" % number for number in range(WRITTEN_TOGETHER * 2 + 1)]

    receive(channel, framed(*requests))

    assert written(channel) == b"".join(b"<" + request + b">" for request in requests)
    assert transport(channel).writes == 3


@pytest.mark.parametrize("last", [b"bad", b"no"])
def test_earlier_answers_are_written_before_the_connection_closes(channel: Channel, last: bytes) -> None:
    receive(channel, framed(b"a", b"b", last, b"c"))

    assert written(channel) == b"<a><b>"
    assert transport(channel).closed


@dataclass
class SlowDispatcher(EchoDispatcher):
    """A dispatcher that takes a millisecond per request."""

    clock: MockClock = field(default_factory=MockClock)

    def answer(self, frame: bytes | memoryview, offset: int, connection: object) -> Answer:
        self.clock.advance(1)
        return super().answer(frame, offset, connection)


@pytest.fixture
def slow_listener() -> ScriptedListener:
    clock = MockClock()
    return ScriptedListener(dispatcher=SlowDispatcher(clock=clock), clock=clock)


@pytest.fixture
def slow_channel(slow_listener: ScriptedListener) -> Channel:
    channel = Channel(slow_listener)
    channel.connection_made(RecordingTransport())
    return channel


def test_a_chunk_of_many_requests_does_not_block_the_loop(
    slow_channel: Channel, slow_listener: ScriptedListener
) -> None:
    requests = [b"%d" % number for number in range(20)]

    slow_channel.data_received(framed(*requests[:10]))
    slow_channel.data_received(framed(*requests[10:]))

    slow_listener.soon.pop(0)()
    assert 1 <= len(slow_listener.dispatcher.seen) <= ROUND_NS // 1_000_000 + 1
    assert len(slow_listener.turns.work) == 1
    slow_listener.run_turns()
    assert written(slow_channel) == b"".join(b"<" + request + b">" for request in requests)
    assert slow_channel.buffer is None


def test_reading_pauses_while_many_bytes_wait_for_a_turn(
    slow_channel: Channel, slow_listener: ScriptedListener
) -> None:
    large = b"x" * 30_000

    slow_channel.data_received(framed(*[large] * 8))
    paused = transport(slow_channel).reading_paused
    slow_listener.run_turns()

    assert paused
    assert not transport(slow_channel).reading_paused
    assert written(slow_channel) == (b"<" + large + b">") * 8


def test_a_channel_that_closes_before_its_turn_answers_no_more(
    slow_channel: Channel, slow_listener: ScriptedListener
) -> None:
    slow_channel.data_received(framed(*[b"x"] * 10))
    answered = len(slow_listener.dispatcher.seen)

    slow_channel.connection_lost(None)
    slow_listener.run_turns()

    assert len(slow_listener.dispatcher.seen) == answered


def test_a_pending_answer_that_cannot_be_encoded_closes_the_connection(
    channel: Channel, listener: ScriptedListener
) -> None:
    receive(channel, framed(b"later", b"b"))

    listener.dispatcher.deferred[0].complete(b"")
    listener.run_turns()

    assert transport(channel).closed
    assert channel.pending is None
    assert listener.dispatcher.seen == [b"later"]


class WatchedChannel(Channel):
    """A channel that a weak reference can follow."""


def freed(listener: ScriptedListener, receive: Callable[[Channel], None]) -> bool:
    """Whether a channel is freed without the garbage collector once its connection is lost."""
    channel = WatchedChannel(listener)
    channel.connection_made(RecordingTransport())
    alive = weakref.ref(channel)
    gc.disable()
    try:
        receive(channel)
        channel.connection_lost(None)
        del channel
        return alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("stream", [framed(b"a", b"b"), framed(b"later"), framed(b"later", b"b"), b"\0\0"])
def test_a_closed_connection_frees_its_channel_at_once(listener: ScriptedListener, stream: bytes) -> None:
    assert freed(listener, lambda channel: receive(channel, stream))


def test_an_answered_wait_does_not_hold_its_channel(listener: ScriptedListener) -> None:
    def answered(channel: Channel) -> None:
        channel.data_received(framed(b"later"))
        listener.dispatcher.deferred[0].complete(b"<later>")

    assert freed(listener, answered)
    assert listener.dispatcher.deferred[0].callback is None
