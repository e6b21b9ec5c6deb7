"""The memory of waiting requests, and what a closed connection leaves with the garbage collector off."""

from __future__ import annotations

import asyncio
import gc
import struct
import weakref
from collections import Counter
from collections.abc import Iterator

import pytest

from odradek.net.channel import Channel
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from support.batches import NOW_MS, batch_of
from support.broker import HeldFlushes, make_broker
from support.broker_listener import BrokerListener, framed
from support.data_requests import produce_request

LARGE = 1 << 30
BATCH = batch_of(b"x" * 1_000)
OF_A_REQUEST = (
    "CommittedListener",
    "ConnectionContext",
    "Deferred",
    "Exchange",
    "FetchRequest",
    "LongPoll",
    "PartitionData",
    "ProduceRequest",
    "Read",
    "RequestContext",
    "WatchedChannel",
)
"""Classes of the objects that exist for one request or one connection."""


class WatchedChannel(Channel):
    """A channel that a weak reference can follow."""


class SilentTransport(asyncio.Transport):
    """Takes everything."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        return

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        return

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return


def connected(listener: BrokerListener) -> WatchedChannel:
    channel = WatchedChannel(listener)
    channel.connection_made(SilentTransport())
    return channel


@pytest.fixture
def listener() -> BrokerListener:
    listener = BrokerListener(make_broker(log_work=HeldFlushes()))
    listener.broker.topics.create("t", 1, {})
    listener.broker.topics.create("flushed", 1, {"flush.messages": "1"})
    for _ in range(3):
        listener.broker.topics.log("t", 0).append(BATCH, now_ms=NOW_MS)
    return listener


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def fetch(isolation_level: int = 0) -> bytes:
    wanted = FetchTopic(topic="t", partitions=[FetchPartition(partition_max_bytes=LARGE)])
    return framed(
        FetchRequest(
            max_wait_ms=100_000,
            min_bytes=LARGE,
            max_bytes=LARGE,
            isolation_level=isolation_level,
            topics=[wanted],
        ),
        12,
    )


def produce() -> bytes:
    return framed(produce_request("flushed", BATCH), 12)


REQUESTS = {
    "fetch": fetch(),
    "committed fetch": fetch(isolation_level=1),
    "produce": produce(),
    "part of a frame": fetch()[:-1],
    "part of a large frame": struct.pack(">i", 1_000_000) + bytes(70_000),
}


def of_requests() -> Counter[str]:
    """The number of objects of each class of `OF_A_REQUEST`."""
    names = (type(each).__name__ for each in gc.get_objects())
    return Counter(name for name in names if name in OF_A_REQUEST)


def with_records() -> int:
    """The number of partitions of a response that have records."""
    return sum(isinstance(each, PartitionData) and bool(each.records) for each in gc.get_objects())


@pytest.mark.parametrize("quotas", [False, True], ids=["no quotas", "quotas"])
@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.usefixtures("without_collector")
def test_a_closed_connection_leaves_nothing(
    listener: BrokerListener, request_name: str, quotas: bool
) -> None:
    listener.broker.quotas.is_enabled = quotas
    before = of_requests()
    channel = connected(listener)
    alive = weakref.ref(channel)

    channel.data_received(REQUESTS[request_name])
    waiting = channel.pending is not None or channel.buffer is not None
    channel.connection_lost(None)
    del channel
    of_waiting_requests = of_requests() - before
    listener.broker.topics.log("flushed", 0).flush()  # the wait for a flush ends with the flush

    assert waiting or "large" in request_name
    assert alive() is None
    assert of_waiting_requests.keys() <= {"Deferred"}
    assert of_requests() - before == Counter()


@pytest.mark.parametrize("isolation_level", [0, 1], ids=["all", "committed"])
@pytest.mark.usefixtures("without_collector")
def test_a_waiting_fetch_keeps_no_records(listener: BrokerListener, isolation_level: int) -> None:
    before = with_records()
    channel = connected(listener)

    channel.data_received(fetch(isolation_level))
    listener.clock.advance(1_000)

    assert channel.pending is not None
    assert with_records() == before


@pytest.mark.usefixtures("without_collector")
def test_a_fetch_of_many_partitions_keeps_no_records_and_leaves_nothing(
    listener: BrokerListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.broker.handlers.fetch.AT_A_TIME", 0)
    before, with_records_before = of_requests(), with_records()
    channel = connected(listener)

    channel.data_received(fetch())
    listener.clock.advance(1_000)
    waiting = channel.pending is not None
    kept = with_records() - with_records_before
    channel.connection_lost(None)
    del channel
    listener.clock.advance(1_000)

    assert waiting
    assert kept == 0
    assert of_requests() - before == Counter()
