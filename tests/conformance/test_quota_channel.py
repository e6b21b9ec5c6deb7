"""A throttled channel is not read, and is otherwise unaffected (KIP-219); the states of Kafka's
ChannelMuteState, as far as a client can observe them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import struct
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

import pytest

from odradek.bounds.sampled_log import SampledLog
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.net.channel import Channel
from odradek.net.held_bytes import Memory
from odradek.net.request_reader import READ_AHEAD_BYTES
from odradek.net.turns import Turns, TurnSettings
from odradek.plugin.context import ConnectionContext
from odradek.testing.clock import MockClock
from odradek.wire.codec import encode
from odradek.wire.header import RequestHeader, flexible_request_header, request_header
from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.batches import batch_of
from support.broker import make_connection
from support.data_requests import produce_request
from support.memory import memory_of
from support.quota_client import QuotaClient

THROTTLE_MS = 10_000


class RecordingTransport(asyncio.Transport):
    """A transport that records the answers written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[int] = []
        self.closed = self.reading_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Record the correlation ids of complete frames."""
        rest = bytes(data)
        while rest:
            size, correlation_id = struct.unpack_from(">ii", rest)
            self.answers.append(correlation_id)
            rest = rest[size + 4 :]

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.reading_paused = True

    def resume_reading(self) -> None:
        self.reading_paused = False


@dataclass
class OneChannelListener:
    """A listener that uses the event loop of the test."""

    dispatcher: Dispatcher
    clock: MockClock
    max_request_bytes: int = 1 << 20
    refused: int = 0
    refused_log: SampledLog = field(default_factory=lambda: SampledLog(logging.getLogger("odradek.test")))
    draining: bool = False
    shared_buffer: memoryview = field(default_factory=lambda: memoryview(bytearray(100_000)))
    soon: list[Callable[[], Any]] = field(default_factory=list)
    memory: Memory = field(init=False)
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self.memory = memory_of(self.clock)
        self.turns = Turns(self.clock, TurnSettings(), self.soon.append)

    def opened(self, _channel: Channel, _transport: asyncio.Transport) -> ConnectionContext:
        return make_connection()

    def closed(self, _channel: Channel, _in_order: bool) -> None:
        """Ignore the call."""


class LimitedConnection:
    """A connection to a broker whose clients may produce 100 bytes per second."""

    def __init__(self) -> None:
        self.quota_client = QuotaClient()
        self.quota_client.limit(producer_byte_rate=100)
        self.broker = self.quota_client.client.broker
        self.clock = self.quota_client.clock
        self.listener = OneChannelListener(Dispatcher(self.broker, Routes()), self.clock)
        self.transport = RecordingTransport()
        self.channel = Channel(self.listener)
        self.channel.connection_made(self.transport)
        self.correlation_id = 0

    def frame(self, request: Any, version: int) -> bytes:
        """Encode one request with the next correlation id."""
        self.correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self.correlation_id, "test")
        data = request_header(header, flexible_request_header(request, version)) + encode(request, version)
        return struct.pack(">i", len(data)) + data

    def producing(self, size: int = 2000, acks: int = -1) -> bytes:
        """A request that exceeds the quota."""
        batch = batch_of(b"v" * size, timestamp_ms=self.clock.now_ms())
        return self.frame(produce_request("t", batch, acks=acks), 12)

    def asking(self) -> bytes:
        """A request that is not charged for bytes."""
        return self.frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)

    def waiting_for_records(self) -> bytes:
        """A request that takes half a second to answer and exceeds the request quota."""
        self.quota_client.limit(request_percentage=0.001)
        self.listener.dispatcher.monotonic_ns = count(0, 50_000_000).__next__
        return self.frame(self.quota_client.fetching(max_wait_ms=500), 12)

    def receive(self, *frames: bytes) -> None:
        self.channel.data_received(b"".join(frames))
        self.run_turns()

    def advance(self, elapsed_ms: int) -> None:
        self.clock.advance(elapsed_ms)
        self.run_turns()

    def run_turns(self) -> None:
        while self.listener.soon:
            self.listener.soon.pop(0)()

    @property
    def answers(self) -> list[int]:
        return self.transport.answers

    @property
    def queue_size(self) -> int:
        return self.broker.quotas.produce.queue_size(self.clock.monotonic_ms())


@pytest.fixture
def connection() -> LimitedConnection:
    return LimitedConnection()


def throttled(connection: LimitedConnection) -> int:
    """Send one request that exceeds the quota; return how long the channel is muted, in ms."""
    connection.receive(connection.producing())
    pending = connection.channel.pending
    assert pending is not None
    return cast(Any, pending).throttle.time_ms  # type: ignore[no-any-return]


def test_the_answer_is_sent_at_once(connection: LimitedConnection) -> None:
    throttle_ms = throttled(connection)

    assert throttle_ms > THROTTLE_MS
    assert connection.answers == [1]


def test_requests_wait_for_the_end_of_the_throttle(connection: LimitedConnection) -> None:
    throttle_ms = throttled(connection)

    connection.receive(connection.asking(), connection.asking())
    connection.advance(throttle_ms - 1)
    before = list(connection.answers)
    connection.advance(1)

    assert before == [1]
    assert connection.answers == [1, 2, 3]


def test_later_requests_of_the_same_chunk_wait_too(connection: LimitedConnection) -> None:
    connection.receive(connection.asking(), connection.producing(), connection.asking())
    before = list(connection.answers)

    connection.advance(60_000)

    assert before == [1, 2]
    assert connection.answers == [1, 2, 3]


def test_a_throttled_request_without_an_answer_delays_the_next_request(connection: LimitedConnection) -> None:
    connection.receive(connection.producing(acks=0))
    connection.receive(connection.asking())
    before = list(connection.answers)

    connection.advance(60_000)

    assert before == []
    assert connection.answers == [2]


def test_a_deferred_answer_throttles_when_it_is_sent(connection: LimitedConnection) -> None:
    waiting = connection.waiting_for_records()
    connection.receive(waiting, connection.asking())
    before = list(connection.answers)

    connection.advance(500)
    answered = list(connection.answers)
    connection.advance(1000)

    assert before == []
    assert answered == [1]
    assert connection.answers == [1, 2]


def test_a_throttled_channel_reads_ahead_a_bounded_amount(connection: LimitedConnection) -> None:
    throttled(connection)

    connection.receive(connection.producing(size=READ_AHEAD_BYTES))
    paused = connection.transport.reading_paused
    connection.advance(60_000)

    assert paused
    assert connection.answers == [1, 2]
    assert not connection.transport.reading_paused


def test_a_throttled_channel_is_not_idle(connection: LimitedConnection) -> None:
    throttle_ms = throttled(connection)
    meanwhile = connection.channel.idle_since_ms()

    connection.advance(throttle_ms)

    assert meanwhile is None
    assert connection.channel.idle_since_ms() == connection.clock.monotonic_ms()


def test_a_throttled_channel_that_is_not_read_counts_as_idle(connection: LimitedConnection) -> None:
    throttled(connection)
    connection.receive(connection.producing(size=READ_AHEAD_BYTES))
    sent_ms = connection.clock.monotonic_ms()

    connection.advance(1000)

    assert connection.transport.reading_paused
    assert connection.channel.idle_since_ms() == sent_ms


def test_the_queue_counts_a_channel_until_it_is_read_again(connection: LimitedConnection) -> None:
    throttle_ms = throttled(connection)
    meanwhile = connection.queue_size

    connection.advance(throttle_ms)

    assert (meanwhile, connection.queue_size) == (1, 0)


def test_a_channel_that_closes_while_throttled_is_forgotten(connection: LimitedConnection) -> None:
    tasks = len(connection.clock.timer)
    throttle_ms = throttled(connection)

    connection.channel.connection_lost(None)
    left = (connection.queue_size, len(connection.clock.timer) - tasks)
    connection.advance(throttle_ms)

    assert left == (0, 0)
    assert connection.answers == [1]
    assert connection.queue_size == 0


def test_disconnected_clients_leave_nothing_behind(connection: LimitedConnection) -> None:
    channels = connection.broker.quotas.produce.channels
    for _ in range(500):
        channel = Channel(connection.listener)
        channel.connection_made(RecordingTransport())
        channel.data_received(connection.producing())
        channel.connection_lost(None)

    assert connection.queue_size == 0
    assert len(channels.heap) < 200


def test_a_stop_does_not_wait_for_the_end_of_a_throttle(connection: LimitedConnection) -> None:
    throttled(connection)

    connection.channel.drain()

    assert connection.answers == [1]
    assert connection.transport.closed


def test_an_answer_that_throttles_during_a_stop_is_still_sent(connection: LimitedConnection) -> None:
    waiting = connection.waiting_for_records()
    connection.receive(waiting)

    connection.listener.draining = True
    connection.channel.drain()

    assert connection.answers == [1]
    assert connection.transport.closed


def test_the_end_of_a_throttle_after_the_host_closed_the_channel_is_harmless(
    connection: LimitedConnection,
) -> None:
    throttle_ms = throttled(connection)

    connection.channel.close()
    connection.advance(throttle_ms)

    assert connection.transport.closed
    assert connection.answers == [1]


def test_another_channel_is_read_during_the_throttle(connection: LimitedConnection) -> None:
    throttled(connection)
    neighbor, transport = Channel(connection.listener), RecordingTransport()
    neighbor.connection_made(transport)

    neighbor.data_received(connection.asking())

    assert transport.answers == [2]


def test_each_of_many_requests_is_throttled_in_turn(connection: LimitedConnection) -> None:
    connection.receive(*[connection.producing(size=1500) for _ in range(4)])
    seen = [len(connection.answers)]
    while connection.channel.pending is not None:
        connection.advance(cast(Any, connection.channel.pending).throttle.time_ms)
        seen.append(len(connection.answers))

    assert seen == [1, 2, 3, 4, 4]


class WatchedChannel(Channel):
    """A channel that a weak reference can follow."""


@pytest.mark.parametrize("request_of", ["producing", "waiting_for_records"])
def test_a_closed_channel_that_waits_or_is_throttled_is_freed_at_once(
    connection: LimitedConnection, request_of: str
) -> None:
    channel = WatchedChannel(connection.listener)
    channel.connection_made(RecordingTransport())
    channel.data_received(getattr(connection, request_of)())
    assert channel.pending is not None
    alive = weakref.ref(channel)
    gc.disable()

    channel.connection_lost(None)
    del channel

    gc.enable()
    assert alive() is None
