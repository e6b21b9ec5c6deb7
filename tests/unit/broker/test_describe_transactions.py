from __future__ import annotations

import pytest

from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TopicData,
    TransactionState,
)
from support.broker import BrokerClient


@pytest.fixture
def client() -> BrokerClient:
    return BrokerClient()


def begin(client: BrokerClient) -> ProducerIdAndEpoch:
    transactions = client.broker.transactions
    producer = transactions.init_producer_id("tx", 5_000)
    partitions = frozenset({("b", 1), ("a", 3), ("b", 0)})
    transactions.add_partitions("tx", producer, partitions)
    return producer


def described(client: BrokerClient, *transactional_ids: str) -> list[TransactionState]:
    request = DescribeTransactionsRequest(transactional_ids=list(transactional_ids))
    states: list[TransactionState] = client.send(request).transaction_states
    return states


def test_an_open_transaction_is_described_with_its_partitions(client: BrokerClient) -> None:
    producer = begin(client)

    (state,) = described(client, "tx")

    assert state == TransactionState(
        transactional_id="tx",
        transaction_state="Ongoing",
        transaction_timeout_ms=5_000,
        transaction_start_time_ms=client.broker.clock.now_ms(),
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[TopicData(topic="a", partitions=[3]), TopicData(topic="b", partitions=[0, 1])],
    )


@pytest.mark.parametrize(("committed", "state"), [(True, "CompleteCommit"), (False, "CompleteAbort")])
def test_a_finished_transaction_has_no_partitions(client: BrokerClient, committed: bool, state: str) -> None:
    producer = begin(client)
    client.broker.transactions.end("tx", producer, committed=committed, version_2=True)

    (found,) = described(client, "tx")

    assert (found.transaction_state, found.topics) == (state, [])


def test_an_id_that_never_had_a_transaction_is_empty(client: BrokerClient) -> None:
    client.broker.transactions.init_producer_id("tx", 5_000)

    (state,) = described(client, "tx")

    assert (state.transaction_state, state.transaction_start_time_ms) == ("Empty", -1)


def test_each_id_has_its_own_error(client: BrokerClient) -> None:
    begin(client)

    states = described(client, "tx", "unknown", "")

    codes = [state.error_code for state in states]
    assert codes == [0, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, ErrorCode.INVALID_REQUEST]
