from __future__ import annotations

from typing import Any

import pytest

from odradek.testing.clock import MockClock
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from support.broker import BrokerClient


@pytest.fixture
def client() -> BrokerClient:
    """Ids ``empty``, ``open-old`` and, a second later, ``open-new``, with the producer ids 0, 1 and 2."""
    client = BrokerClient()
    transactions, clock = client.broker.transactions, client.broker.clock
    assert isinstance(clock, MockClock)
    transactions.init_producer_id("empty", 60_000)
    for name in ("open-old", "open-new"):
        producer = transactions.init_producer_id(name, 60_000)
        clock.advance(1_000)
        transactions.add_partitions(name, producer, frozenset({("t", 0)}))
    return client


def ask(client: BrokerClient, version: int = 2, **fields: Any) -> ListTransactionsResponse:
    answer: ListTransactionsResponse = client.send(ListTransactionsRequest(**fields), version)
    return answer


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"empty", "open-old", "open-new"}),
        ({"state_filters": ["Ongoing"]}, {"open-old", "open-new"}),
        ({"state_filters": ["Empty", "CompleteAbort"]}, {"empty"}),
        ({"state_filters": ["Dead"]}, set()),
        ({"producer_id_filters": [0, 2, 99]}, {"empty", "open-new"}),
        ({"state_filters": ["Ongoing"], "duration_filter": 0}, {"open-old"}),
        ({"state_filters": ["Ongoing"], "duration_filter": 999}, {"open-old"}),
        ({"state_filters": ["Ongoing"], "duration_filter": 1_000}, set()),
        ({"transactional_id_pattern": "open.*"}, {"open-old", "open-new"}),
        ({"transactional_id_pattern": "open"}, set()),
        ({"transactional_id_pattern": ""}, {"empty", "open-old", "open-new"}),
        ({"transactional_id_pattern": ".*-new", "producer_id_filters": [1]}, set()),
    ],
)
def test_a_transaction_must_pass_all_filters(
    client: BrokerClient, fields: dict[str, Any], expected: set[str]
) -> None:
    answer = ask(client, **fields)

    assert {state.transactional_id for state in answer.transaction_states} == expected
    assert answer.unknown_state_filters == []


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_listed_transaction_has_its_state_and_producer(client: BrokerClient, version: int) -> None:
    answer = ask(client, version, producer_id_filters=[1])

    (state,) = answer.transaction_states
    assert (state.transactional_id, state.producer_id, state.transaction_state) == ("open-old", 1, "Ongoing")


def test_unknown_states_are_returned(client: BrokerClient) -> None:
    answer = ask(client, state_filters=["Ongoing", "Sleeping"])

    assert answer.unknown_state_filters == ["Sleeping"]
    assert len(answer.transaction_states) == 2


def test_an_invalid_pattern_is_refused(client: BrokerClient) -> None:
    answer = ask(client, transactional_id_pattern="(")

    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
