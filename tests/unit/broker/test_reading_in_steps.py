"""Requests with many elements are read in steps."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.dispatch.dispatcher import LARGE_REQUEST_BYTES
from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from odradek.waiting.deferred import Deferred
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from support.broker import BrokerClient, make_broker
from support.ticking_clock import TickingClock

TOPICS = 2_000
READING_STEPS = TOPICS // 128
DELETE_VERSION, FETCH_VERSION = 6, 12
AT_ONCE_NS = 0
OVER_TURNS_NS = 100_000
"""A tenth of a turn for each step."""


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock(tick_ns=OVER_TURNS_NS)


@pytest.fixture
def client(clock: TickingClock) -> BrokerClient:
    return BrokerClient(make_broker(clock=clock))


def many_topics() -> DeleteTopicsRequest:
    states = [DeleteTopicState(name=f"topic-{number}") for number in range(TOPICS)]
    return DeleteTopicsRequest(topics=states, timeout_ms=10_000)


def outcome(client: BrokerClient, clock: TickingClock, frame: bytes) -> Any:
    """The answer, after as many turns as it takes; or the error that ends the connection."""
    assert len(frame) > LARGE_REQUEST_BYTES
    try:
        answer = client.dispatcher.answer(frame, 0, client.connection)
    except WireError as error:
        return error
    if not isinstance(answer, Deferred):
        return answer
    outcomes: list[Any] = []
    answer.when_done(outcomes.append)
    clock.advance(0)
    return outcomes[0]


def test_a_large_request_is_read_over_several_turns(client: BrokerClient, clock: TickingClock) -> None:
    answer = client.defer(many_topics(), DELETE_VERSION)
    turns = 0

    while (response := answer()) is None:
        clock.one_turn()
        turns += 1

    assert [row.error_code for row in response.responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * TOPICS
    assert turns > (READING_STEPS + TOPICS) // 12  # what reading takes, and then the handler


@pytest.mark.parametrize("tick_ns", [AT_ONCE_NS, OVER_TURNS_NS])
def test_a_large_request_that_ends_too_early_is_a_wire_error(
    client: BrokerClient, clock: TickingClock, tick_ns: int
) -> None:
    clock.tick_ns = tick_ns
    frame = client.frame(many_topics(), DELETE_VERSION)

    assert isinstance(outcome(client, clock, frame[:-50]), WireError)


def test_a_request_whose_client_leaves_while_it_is_read_is_dropped(
    client: BrokerClient, clock: TickingClock
) -> None:
    frame = client.frame(many_topics(), DELETE_VERSION)
    answer = client.dispatcher.answer(frame, 0, client.connection)
    assert isinstance(answer, Deferred)

    answer.lost()

    clock.advance(1_000)
    assert not answer.done


def test_a_fetch_that_is_read_in_steps_can_wait_and_be_abandoned(
    client: BrokerClient, clock: TickingClock
) -> None:
    client.broker.topics.create("t", 1, {})
    partitions = [FetchPartition(partition=0, partition_max_bytes=1)] * 1_000
    request = FetchRequest(
        max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=partitions)]
    )
    answer = client.dispatcher.answer(client.frame(request, FETCH_VERSION), 0, client.connection)
    assert isinstance(answer, Deferred)
    clock.advance(0)
    waiting = len(clock.timer)

    answer.lost()

    assert len(clock.timer) < waiting


def test_reading_is_a_part_of_the_request_time(client: BrokerClient, clock: TickingClock) -> None:
    quotas = client.broker.quotas
    quotas.apply(ClientQuotaEntity(client_id=DEFAULT), {"request_percentage": 1e6})
    charged_ns: list[int] = []
    charge = client.dispatcher.charge

    def noted(route: Any, exchange: Any, response: Any) -> Any:
        charged_ns.append(exchange.spent_ns)
        return charge(route, exchange, response)

    client.dispatcher.charge = noted  # type: ignore[method-assign]

    answer = outcome(client, clock, client.frame(many_topics(), DELETE_VERSION))

    assert answer
    (spent_ns,) = charged_ns
    assert spent_ns > (READING_STEPS + TOPICS) * OVER_TURNS_NS
