"""Fetches of many partitions: read over several turns of the loop, like a smaller one otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.handlers import fetch
from odradek.waiting.deferred import Deferred
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker
from support.ticking_clock import TickingClock

PARTITIONS = 30
WAIT_MS = 500


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def client(clock: TickingClock, monkeypatch: pytest.MonkeyPatch) -> BrokerClient:
    monkeypatch.setattr(fetch, "AT_A_TIME", 10)
    client = BrokerClient(make_broker(clock=clock))
    client.broker.topics.create("t", PARTITIONS, {})
    return client


def request(client: BrokerClient, **fields: Any) -> FetchRequest:
    wanted = [FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in range(PARTITIONS)]
    topic = FetchTopic(topic_id=client.broker.topics.by_name["t"].id, partitions=wanted)
    defaults: dict[str, Any] = {
        "max_wait_ms": WAIT_MS,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "topics": [topic],
    }
    return FetchRequest(**(defaults | fields))


def append(client: BrokerClient, partition: int) -> None:
    client.broker.topics.log("t", partition).append(batch_of(b"x"), now_ms=NOW_MS)


def listeners(client: BrokerClient) -> int:
    return sum(len(log.listeners) for log in client.broker.topics.by_name["t"].partitions)


def with_records(response: FetchResponse) -> list[int]:
    (topic,) = response.responses
    return [each.partition_index for each in topic.partitions if each.records]


def test_records_are_read_over_several_turns(client: BrokerClient, clock: TickingClock) -> None:
    for partition in (0, 29):
        append(client, partition)
    answer = client.defer(request(client))
    assert answer() is None

    clock.advance(0)

    assert with_records(answer()) == [0, 29]
    assert client.broker.steps.turns >= PARTITIONS // 10


def test_it_waits_for_records(client: BrokerClient, clock: TickingClock) -> None:
    answer = client.defer(request(client))
    clock.advance(0)
    assert answer() is None
    assert listeners(client) == PARTITIONS

    append(client, 7)
    clock.advance(0)

    assert with_records(answer()) == [7]
    assert listeners(client) == 0


def test_it_waits_no_longer_than_it_may(client: BrokerClient, clock: TickingClock) -> None:
    answer = client.defer(request(client))

    clock.advance(WAIT_MS)

    assert with_records(answer()) == []
    assert listeners(client) == 0


def test_nothing_waits_for_a_lost_connection(client: BrokerClient, clock: TickingClock) -> None:
    answer = client.dispatcher.answer(
        client.frame(request(client), FetchRequest.VERSIONS.last), 0, client.connection
    )
    assert isinstance(answer, Deferred)
    clock.advance(0)
    assert listeners(client) == PARTITIONS

    answer.lost()

    clock.advance(WAIT_MS)
    assert listeners(client) == 0
    assert not answer.done
