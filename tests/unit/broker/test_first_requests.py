"""The first request of a version compiles its codecs, one in a turn of the loop."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from odradek.broker.dispatch import routes
from odradek.broker.dispatch.dispatcher import LARGE_REQUEST_BYTES
from odradek.waiting.deferred import Deferred
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from support.broker import BrokerClient, make_broker
from support.ticking_clock import TickingClock

VERSION = 5
CODECS = ["reader", "writer"]
TURN_NS = 1_000_000


@pytest.fixture
def clock() -> TickingClock:
    """Each step takes a whole turn."""
    return TickingClock(tick_ns=TURN_NS)


@pytest.fixture
def client(clock: TickingClock) -> BrokerClient:
    return BrokerClient(make_broker(clock=clock))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The codecs that requests have asked for, each once."""
    seen: list[str] = []

    def watched(name: str, find: Callable[..., Any]) -> Callable[..., Any]:
        def found(cls: type, version: int) -> Any:
            if name not in seen:
                seen.append(name)
            return find(cls, version)

        return found

    for name in (*CODECS, "stepped_reader"):
        monkeypatch.setattr(routes, name, watched(name, getattr(routes, name)))
    return seen


def delete_topics(count: int = 1) -> DeleteTopicsRequest:
    states = [DeleteTopicState(name=f"topic-{number}") for number in range(count)]
    return DeleteTopicsRequest(
        topics=states, topic_names=[state.name or "" for state in states], timeout_ms=10_000
    )


def in_each_turn(clock: TickingClock, answer: Callable[[], Any], seen: list[str]) -> list[list[str]]:
    """The codecs compiled in each turn until the answer came, without the turns that compiled none."""
    turns: list[list[str]] = []
    before = len(seen)
    while answer() is None:
        clock.one_turn()
        if len(seen) > before:
            turns.append(seen[before:])
            before = len(seen)
    return turns


def test_a_turn_compiles_one_codec(client: BrokerClient, clock: TickingClock, compiled: list[str]) -> None:
    answer = client.defer(delete_topics(), VERSION)
    at_once = list(compiled)

    turns = in_each_turn(clock, answer, compiled)

    assert (at_once, turns) == ([], [["reader"], ["writer"]])
    assert [row.error_code for row in answer().responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_the_reader_of_large_requests_has_a_turn_of_its_own(
    client: BrokerClient, clock: TickingClock, compiled: list[str]
) -> None:
    request = delete_topics(2_000)
    assert len(client.frame(request, VERSION)) > LARGE_REQUEST_BYTES

    turns = in_each_turn(clock, client.defer(request, VERSION), compiled)

    assert turns == [["reader"], ["writer"], ["stepped_reader"]]


def test_beside_long_requests_nothing_is_compiled_at_once(
    client: BrokerClient, clock: TickingClock, compiled: list[str]
) -> None:
    def long_request() -> Generator[None, None, None]:
        while True:
            yield

    client.broker.steps.answer(long_request())

    client.defer(delete_topics(), VERSION)

    assert compiled == []


def test_codecs_that_take_little_time_do_not_delay_the_answer(
    client: BrokerClient, clock: TickingClock, compiled: list[str]
) -> None:
    clock.tick_ns = TURN_NS // 20

    answer = client.dispatcher.answer(client.frame(delete_topics(), VERSION), 0, client.connection)

    assert not isinstance(answer, Deferred)
    assert compiled == CODECS


def test_a_second_request_finds_its_codecs(
    client: BrokerClient, clock: TickingClock, compiled: list[str]
) -> None:
    in_each_turn(clock, client.defer(delete_topics(), VERSION), compiled)
    compiled.clear()

    in_each_turn(clock, client.defer(delete_topics(), VERSION), compiled)

    assert compiled == []


def test_a_client_that_leaves_ends_the_compiling(
    client: BrokerClient, clock: TickingClock, compiled: list[str]
) -> None:
    answer = client.dispatcher.answer(client.frame(delete_topics(), VERSION), 0, client.connection)
    assert isinstance(answer, Deferred)

    answer.lost()

    clock.advance(0)
    assert client.broker.steps.tasks == set()
    assert compiled == []


def test_bytes_after_a_compiled_codec_that_make_no_sense_end_the_connection(
    client: BrokerClient, clock: TickingClock
) -> None:
    frame = client.frame(delete_topics(), VERSION)
    answer = client.dispatcher.answer(frame[:-9], 0, client.connection)
    assert isinstance(answer, Deferred)
    outcomes: list[Any] = []

    answer.when_done(outcomes.append)
    clock.advance(0)

    assert len(outcomes) == 1
    assert isinstance(outcomes[0], WireError)
