from __future__ import annotations

import pytest

from odradek.log.control_batch import TransactionMarker
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient


@pytest.fixture
def client() -> BrokerClient:
    client = BrokerClient()
    client.broker.topics.create("t", 1, {})
    return client


def described(client: BrokerClient, name: str = "t", index: int = 0) -> PartitionResponse:
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[index])])
    partition: PartitionResponse = client.send(request).topics[0].partitions[0]
    return partition


def test_a_new_partition_has_no_producers(client: BrokerClient) -> None:
    partition = described(client)

    assert (partition.error_code, partition.active_producers) == (0, [])


def test_a_transactional_and_an_idempotent_producer_are_described(client: BrokerClient) -> None:
    log = client.broker.topics.log("t", 0)
    log.append(batch_of(b"a", b"b", producer=(5, 1, 0)), NOW_MS)
    log.append(
        batch_of(b"c", producer=(6, 2, 0), transactional=True), NOW_MS, join_transaction=lambda _: None
    )

    partition = described(client)

    assert partition.active_producers == [
        ProducerState(
            producer_id=5, producer_epoch=1, last_sequence=1, last_timestamp=NOW_MS, coordinator_epoch=-1
        ),
        ProducerState(
            producer_id=6,
            producer_epoch=2,
            last_sequence=0,
            last_timestamp=NOW_MS,
            coordinator_epoch=-1,
            current_txn_start_offset=2,
        ),
    ]


def test_after_a_marker_no_transaction_is_open(client: BrokerClient) -> None:
    log = client.broker.topics.log("t", 0)
    log.append(
        batch_of(b"c", producer=(6, 2, 0), transactional=True), NOW_MS, join_transaction=lambda _: None
    )
    log.append_marker(TransactionMarker(6, 3, committed=True), NOW_MS)

    (producer,) = described(client).active_producers

    assert (producer.current_txn_start_offset, producer.producer_epoch) == (-1, 3)
    assert (producer.coordinator_epoch, producer.last_sequence) == (0, -1)


@pytest.mark.parametrize(
    ("name", "index", "code"),
    [
        ("t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("not legal", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_an_unknown_partition_is_refused(
    client: BrokerClient, name: str, index: int, code: ErrorCode
) -> None:
    partition = described(client, name, index)

    assert (partition.error_code, partition.active_producers) == (code, [])
