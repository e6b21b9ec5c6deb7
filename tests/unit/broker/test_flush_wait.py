"""Topics with ``flush.messages``: an answered record is on disk."""

from __future__ import annotations

import os
from typing import Any

import pytest

from odradek.broker.flush_wait import FlushWait
from odradek.log.log_work import LogWork
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.produce import (
    PartitionProduceResponse,
)
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, HeldFlushes, make_broker
from support.data_requests import produce_request


def make_client(work: LogWork) -> BrokerClient:
    """``a`` is flushed after each record, ``b`` after two."""
    client = BrokerClient(make_broker(log_work=work))
    client.broker.topics.create("a", 1, {"flush.messages": "1"})
    client.broker.topics.create("b", 1, {"flush.messages": "2"})
    return client


def produce(client: BrokerClient, topic: str) -> Any:
    response = client.send(produce_request(topic, batch_of(b"x")), 12)
    return None if response is None else response.responses[0].partition_responses[0]


def test_the_answer_comes_after_the_flush() -> None:
    work = HeldFlushes()
    client = make_client(work)

    answer = produce(client, "a")

    assert answer is None
    assert work.asked == [client.broker.topics.log("a", 0)]


def test_a_flush_that_is_not_due_delays_no_answer() -> None:
    client = make_client(HeldFlushes())

    answers = [produce(client, "b"), produce(client, "b")]

    assert answers[0].base_offset == 0
    assert answers[1] is None


def test_an_immediate_flush_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    client, flushed = make_client(LogWork()), list[int]()
    monkeypatch.setattr(os, "fsync", flushed.append)

    answer = produce(client, "a")

    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert flushed


def test_a_failed_flush_is_a_storage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    log = make_client(HeldFlushes()).broker.topics.log("a", 0)
    log.append(batch_of(b"x"), NOW_MS)
    wait, answer = FlushWait(), PartitionProduceResponse(base_offset=0)
    wait.appended(log, answer)
    promised = wait.finish()

    with pytest.raises(ApiError):
        log.flush()

    assert promised.done
    assert (answer.error_code, answer.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
