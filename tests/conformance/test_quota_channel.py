"""A throttled channel is not read, and nothing else happens to it: KIP-219, X2, X6, and the states of
ChannelMuteState as far as one can see them.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

import pytest

from odradek.broker.dispatch.routing import Dispatcher, load_handlers
from odradek.plugin.context import ConnectionContext
from odradek.server.sockets.channel import READ_AHEAD_BYTES, Channel
from odradek.server.sockets.listener import Listener
from odradek.testing.clock import MockClock
from odradek.wire.codec import encode
from odradek.wire.header import RequestHeader, flexible_request_header, request_header
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.batches import batch_of
from support.broker import make_connection
from support.quota_client import QuotaClient

THROTTLE_MS = 10_000


class RecordingTransport(asyncio.Transport):
    """Keeps the answers that were written."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[int] = []
        self.closed = self.reading_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Remember the correlation ids of whole frames."""
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
    """A listener with the loop of the test."""

    dispatcher: Dispatcher
    clock: MockClock
    max_request_bytes: int = 1 << 20
    refused: int = 0
    draining: bool = False
    turns: list[Callable[[], Any]] = field(default_factory=list)

    @property
    def loop(self) -> OneChannelListener:
        return self

    def call_soon(self, callback: Callable[[], Any]) -> None:
        self.turns.append(callback)

    def opened(self, _channel: Channel, _transport: asyncio.Transport) -> ConnectionContext:
        return make_connection()

    def closed(self, _channel: Channel) -> None:
        """Nobody asks."""


class World:
    """A channel to a broker whose clients may produce a hundred bytes a second."""

    def __init__(self) -> None:
        self.quota_client = QuotaClient()
        self.quota_client.limit(producer_byte_rate=100)
        self.broker = self.quota_client.client.broker
        self.clock = self.quota_client.clock
        self.listener = OneChannelListener(Dispatcher(self.broker, load_handlers()), self.clock)
        self.transport = RecordingTransport()
        self.channel = Channel(cast(Listener, self.listener))
        self.channel.connection_made(self.transport)
        self.correlation_id = 0

    def frame(self, request: Any, version: int) -> bytes:
        """One request with the next correlation id."""
        self.correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self.correlation_id, "test")
        data = request_header(header, flexible_request_header(request, version)) + encode(request, version)
        return struct.pack(">i", len(data)) + data

    def producing(self, size: int = 2000, acks: int = -1) -> bytes:
        """A request that is too much."""
        batch = batch_of(b"v" * size, timestamp_ms=self.clock.now_ms())
        data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
        return self.frame(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data]), 12)

    def asking(self) -> bytes:
        """A request that is free of bytes."""
        return self.frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)

    def waiting_for_records(self) -> bytes:
        """A request that takes half a second to answer, and much of the host's time."""
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
        while self.listener.turns:
            self.listener.turns.pop(0)()

    @property
    def answers(self) -> list[int]:
        return self.transport.answers

    @property
    def queue_size(self) -> int:
        return self.broker.quotas.produce.queue_size(self.clock.now_ms())


@pytest.fixture
def world() -> World:
    return World()


def throttled(world: World) -> int:
    """Send one request that is too much; for how long the channel is not read."""
    world.receive(world.producing())
    pending = world.channel.pending
    assert pending is not None
    return cast(Any, pending).throttle_ms  # type: ignore[no-any-return]


def test_the_answer_is_sent_at_once(world: World) -> None:
    throttle_ms = throttled(world)

    assert throttle_ms > THROTTLE_MS
    assert world.answers == [1]


def test_requests_wait_for_the_end_of_the_throttle(world: World) -> None:
    throttle_ms = throttled(world)

    world.receive(world.asking(), world.asking())
    world.advance(throttle_ms - 1)
    before = list(world.answers)
    world.advance(1)

    assert before == [1]
    assert world.answers == [1, 2, 3]


def test_requests_of_the_same_chunk_wait_too(world: World) -> None:
    world.receive(world.asking(), world.producing(), world.asking())
    before = list(world.answers)

    world.advance(60_000)

    assert before == [1, 2]
    assert world.answers == [1, 2, 3]


def test_X2_without_an_answer_the_next_request_waits(world: World) -> None:
    world.receive(world.producing(acks=0))
    world.receive(world.asking())
    before = list(world.answers)

    world.advance(60_000)

    assert before == []
    assert world.answers == [2]


def test_a_deferred_answer_throttles_when_it_is_there(world: World) -> None:
    waiting = world.waiting_for_records()
    world.receive(waiting, world.asking())
    before = list(world.answers)

    world.advance(500)
    answered = list(world.answers)
    world.advance(1000)

    assert before == []
    assert answered == [1]
    assert world.answers == [1, 2]


def test_a_throttled_channel_holds_only_so_much(world: World) -> None:
    throttled(world)

    world.receive(world.producing(size=READ_AHEAD_BYTES))
    paused = world.transport.reading_paused
    world.advance(60_000)

    assert paused
    assert world.answers == [1, 2]
    assert not world.transport.reading_paused


def test_a_throttled_channel_is_not_idle(world: World) -> None:
    throttle_ms = throttled(world)
    meanwhile = world.channel.idle_since_ms()

    world.advance(throttle_ms)

    assert meanwhile is None
    assert world.channel.idle_since_ms() == world.clock.now_ms()


def test_a_throttled_channel_that_is_not_read_may_have_been_left(world: World) -> None:
    throttled(world)
    world.receive(world.producing(size=READ_AHEAD_BYTES))
    sent_ms = world.clock.now_ms()

    world.advance(1000)

    assert world.transport.reading_paused
    assert world.channel.idle_since_ms() == sent_ms


def test_the_queue_counts_a_channel_until_it_is_read_again(world: World) -> None:
    throttle_ms = throttled(world)
    meanwhile = world.queue_size

    world.advance(throttle_ms)

    assert (meanwhile, world.queue_size) == (1, 0)


def test_X6_a_channel_that_is_closed_meanwhile_is_forgotten(world: World) -> None:
    tasks = len(world.clock.timer)
    throttle_ms = throttled(world)

    world.channel.connection_lost(None)
    left = (world.queue_size, len(world.clock.timer) - tasks)
    world.advance(throttle_ms)

    assert left == (0, 0)
    assert world.answers == [1]
    assert world.queue_size == 0


def test_clients_that_come_and_go_leave_nothing_behind(world: World) -> None:
    channels = world.broker.quotas.produce.channels
    for _ in range(500):
        channel = Channel(cast(Listener, world.listener))
        channel.connection_made(RecordingTransport())
        channel.data_received(world.producing())
        channel.connection_lost(None)

    assert world.queue_size == 0
    assert len(channels.heap) < 200


def test_a_stop_does_not_wait_for_a_throttle(world: World) -> None:
    throttled(world)

    world.channel.drain()

    assert world.answers == [1]
    assert world.transport.closed


def test_an_answer_that_throttles_during_a_stop_is_sent(world: World) -> None:
    waiting = world.waiting_for_records()
    world.receive(waiting)

    world.listener.draining = True
    world.channel.drain()

    assert world.answers == [1]
    assert world.transport.closed


def test_the_end_of_a_throttle_after_the_host_closed_the_channel_is_harmless(world: World) -> None:
    throttle_ms = throttled(world)

    world.channel.close()
    world.advance(throttle_ms)

    assert world.transport.closed
    assert world.answers == [1]


def test_a_neighbor_is_read_meanwhile(world: World) -> None:
    throttled(world)
    neighbor, transport = Channel(cast(Listener, world.listener)), RecordingTransport()
    neighbor.connection_made(transport)

    neighbor.data_received(world.asking())

    assert transport.answers == [2]


def test_one_after_the_other_of_many_requests_is_throttled(world: World) -> None:
    world.receive(*[world.producing(size=1500) for _ in range(4)])
    seen = [len(world.answers)]
    while world.channel.pending is not None:
        world.advance(cast(Any, world.channel.pending).throttle_ms)
        seen.append(len(world.answers))

    assert seen == [1, 2, 3, 4, 4]
