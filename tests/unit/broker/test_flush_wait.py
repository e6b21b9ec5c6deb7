"""Topics with ``flush.messages``: an answered record is on disk."""

from __future__ import annotations

import os
from typing import Any

import pytest

from odradek.broker.flush_wait import FlushWait
from odradek.log.partition_log import PartitionLog
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.produce import (
    PartitionProduceResponse,
)
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient
from support.data_requests import produce_request


@pytest.fixture
def client() -> BrokerClient:
    """``a`` is flushed after each record, ``b`` after two."""
    client = BrokerClient()
    client.broker.topics.create("a", 1, {"flush.messages": "1"})
    client.broker.topics.create("b", 1, {"flush.messages": "2"})
    return client


def produce(client: BrokerClient, topic: str) -> Any:
    response = client.send(produce_request(topic, batch_of(b"x")), 12)
    return None if response is None else response.responses[0].partition_responses[0]


def test_the_answer_comes_after_the_flush(client: BrokerClient) -> None:
    asked: list[PartitionLog] = []
    client.broker.logs.flush_wanted = lambda log, _wait_ms: asked.append(log)

    answer = produce(client, "a")

    assert answer is None
    assert asked == [client.broker.topics.log("a", 0)]


def test_a_flush_that_is_not_due_delays_no_answer(client: BrokerClient) -> None:
    client.broker.logs.flush_wanted = lambda _log, _wait_ms: None

    answers = [produce(client, "b"), produce(client, "b")]

    assert answers[0].base_offset == 0
    assert answers[1] is None


def test_an_immediate_flush_is_answered_at_once(
    client: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)

    answer = produce(client, "a")

    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert flushed


def test_a_failed_flush_is_a_storage_error(client: BrokerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    def flush(log: PartitionLog, _wait_ms: int) -> None:
        client.broker.timer.schedule(0, lambda: flush_and_fail(log))

    def flush_and_fail(log: PartitionLog) -> None:
        with pytest.raises(ApiError):
            log.flush()

    monkeypatch.setattr(os, "fsync", failing)
    client.broker.logs.flush_wanted = flush
    log = client.broker.topics.log("a", 0)
    log.append(batch_of(b"x"), NOW_MS)
    wait, answer = FlushWait(), PartitionProduceResponse(base_offset=0)
    wait.appended(log, answer)
    promised = wait.finish()

    client.broker.timer.run_due(client.broker.clock.monotonic_ms())

    assert promised.done
    assert (answer.error_code, answer.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
