"""Fetch answers whose records stay in their files until they are sent."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.broker.fetch.fetch_read import INLINE_BYTES
from odradek.waiting.deferred import Deferred
from odradek.wire.messages.fetch import FetchRequest
from odradek.wire.parts import Parts
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker, make_connection
from support.broker_listener import framed
from support.data_requests import fetch_request

VERSIONS = range(FetchRequest.VERSIONS.first, FetchRequest.VERSIONS.last + 1)
EVERYTHING = 1 << 30
HALF = INLINE_BYTES * 3 // 5


@pytest.fixture
def client() -> BrokerClient:
    """Three partitions; any two of them are larger than `INLINE_BYTES`."""
    client = BrokerClient(make_broker())
    client.broker.topics.create("t", 3, {})
    for partition in range(3):
        client.broker.topics.log("t", partition).append(batch_of(b"x" * HALF), now_ms=NOW_MS)
    return client


def request(client: BrokerClient, **fields: Any) -> FetchRequest:
    topic = client.broker.topics.named("t")
    assert topic is not None
    return fetch_request("t", 0, 0, 0, topic_id=topic.id, most=EVERYTHING, **fields)


def answer_to(client: BrokerClient, asked: FetchRequest, version: int) -> object:
    dispatcher = Dispatcher(client.broker, Routes())
    return dispatcher.answer(framed(asked, version), 4, make_connection())


def test_a_small_answer_is_in_memory(client: BrokerClient) -> None:
    asked = request(client)
    del asked.topics[0].partitions[1:]

    assert isinstance(answer_to(client, asked, 12), bytes)


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("version", VERSIONS)
def test_all_but_the_first_bytes_of_a_large_answer_stay_in_the_files(
    client: BrokerClient, version: int, isolation_level: int
) -> None:
    answer = answer_to(client, request(client, isolation_level=isolation_level), version)

    assert isinstance(answer, Parts)
    in_memory = sum(len(piece) for piece in answer.pieces if isinstance(piece, bytes))
    assert HALF < in_memory < INLINE_BYTES
    assert len(answer) == len(bytes(answer)) > 3 * HALF
    response = client.send(request(client, isolation_level=isolation_level), version)
    stored = [client.broker.topics.log("t", each).read(0, EVERYTHING) for each in range(3)]
    assert [bytes(each.records) for each in response.responses[0].partitions] == stored


def test_an_answer_that_waited_stays_in_the_files(client: BrokerClient) -> None:
    asked = request(client, min_bytes=4 * HALF, max_wait_ms=1_000)
    answers: list[object] = []
    waiting = answer_to(client, asked, 12)
    assert isinstance(waiting, Deferred)
    waiting.when_done(answers.append)

    client.broker.topics.log("t", 0).append(batch_of(b"x" * HALF), now_ms=NOW_MS)

    assert isinstance(answers[0], Parts)
    assert len(answers[0]) > 4 * HALF


def test_a_quota_counts_the_bytes_that_are_still_in_the_files(
    client: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.broker.quotas.is_enabled = True
    client.broker.quotas.fetch.is_enabled = True
    charged: list[float] = []

    def record(_user: str, _client_id: str | None, value: float, _now_ms: int) -> int:
        charged.append(value)
        return 0

    monkeypatch.setattr(client.broker.quotas.fetch, "record_and_throttle_ms", record)

    answer = answer_to(client, request(client), 12)

    assert isinstance(answer, Parts)
    header_bytes = 5
    assert charged == [len(answer) - header_bytes]
