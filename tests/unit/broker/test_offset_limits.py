"""The limits of offsets, transactions and producers."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.group.group_config import GroupConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.producer_ids import ProducerIdConfig
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.metadata.store import MetadataStore
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.testing.clock import MockClock
from odradek.transaction.transaction_config import TransactionConfig
from odradek.wire.api_error import ApiError
from odradek.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.wire.messages.end_txn import EndTxnRequest
from odradek.wire.messages.init_producer_id import InitProducerIdResponse
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.batches import batch_of
from support.broker import BrokerClient, make_broker
from support.state_limits import (
    OK,
    REFUSED,
    init,
    of,
)


def commits(client: BrokerClient, group_id: str, **metadata: str) -> list[int]:
    """Commit offsets of these partitions (``p0``, ``p1``) with their metadata; return the error codes."""
    offsets = [
        OffsetCommitRequestPartition(
            partition_index=int(name[1:]), committed_offset=1, committed_metadata=text
        )
        for name, text in metadata.items()
    ]
    request = OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitRequestTopic(name="t", partitions=offsets)]
    )
    (answer,) = client.send(request, 9).topics
    return [partition.error_code for partition in answer.partitions]


def test_offsets() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_offsets=3)))
    client.broker.topics.create("t", 4, {})

    codes = [
        commits(client, "a", p0="", p1=""),
        commits(client, "b", p0="", p1=""),
        commits(client, "a", p0="", p1="", p2=""),
    ]

    assert codes == [[OK, OK], [OK, REFUSED], [OK, OK, REFUSED]]
    assert of(client.broker, "offsets") == (3, 2)


def test_metadata_of_offsets() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_offsets_metadata=10)))
    client.broker.topics.create("t", 4, {})

    codes = [
        commits(client, "a", p0="12345", p1="123456"),
        commits(client, "b", p0="12345"),
        commits(client, "a", p0="123456"),
        commits(client, "a", p0="123"),
    ]

    assert codes == [[OK, REFUSED], [OK], [REFUSED], [OK]]
    assert of(client.broker, "characters of offset metadata") == (8, 2)


def pending(client: BrokerClient, who: InitProducerIdResponse, group_id: str, *indexes: int) -> list[int]:
    """Add offsets to a transaction."""
    partitions = [
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="x")
        for index in indexes
    ]
    request = TxnOffsetCommitRequest(
        transactional_id="a",
        group_id=group_id,
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=partitions)],
    )
    (answer,) = client.send(request, 5).topics
    return [row.error_code for row in answer.partitions]


@pytest.mark.parametrize(("committed", "left"), [(True, 3), (False, 1)])
def test_offsets_in_transactions(committed: bool, left: int) -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_offsets=4)))
    client.broker.topics.create("t", 4, {})
    who = init(client, "a")
    commits(client, "g", p0="xx")

    codes = pending(client, who, "g", 0, 1, 2, 3)
    while_open = of(client.broker, "offsets")
    client.send(
        EndTxnRequest(
            transactional_id="a",
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            committed=committed,
        ),
        3,
    )

    assert codes == [OK, OK, OK, REFUSED]
    assert while_open == (4, 1)
    assert of(client.broker, "offsets") == (left, 1)
    assert of(client.broker, "characters of offset metadata") == (3 if committed else 2, 0)


def test_deleted_offsets_make_room(tmp_path: Path) -> None:
    offsets = SqliteOffsetStore(tmp_path / "metadata.db")
    client = BrokerClient(make_broker(offsets=offsets))
    topic = client.broker.topics.create("t", 4, {})
    client.broker.topics.create("u", 4, {})
    for group_id in ("a", "b", "c"):
        commits(client, group_id, p0="x", p1="xx")
    groups = client.broker.groups

    counts = [of(make_broker(offsets=offsets), "offsets")]
    groups.remove("a")
    counts.append(of(client.broker, "offsets"))
    groups.offsets.delete("b", [(topic.id, 0), (topic.id, 3)])
    counts.append(of(client.broker, "offsets"))
    groups.offsets.drop_topics(lambda topic_id: topic_id != topic.id)

    assert counts == [(6, 0), (4, 0), (3, 0)]
    assert of(client.broker, "offsets") == (0, 0)
    assert of(client.broker, "characters of offset metadata") == (0, 0)
    offsets.close()


def test_transactional_ids() -> None:
    client = BrokerClient(make_broker(transaction_config=TransactionConfig(max_ids=2)))

    codes = [init(client, name).error_code for name in ("a", "b", "c", "a")]

    assert codes == [OK, OK, REFUSED, OK]
    assert of(client.broker, "transactional ids") == (2, 1)


def test_an_expired_transactional_id_makes_room() -> None:
    config = TransactionConfig(max_ids=1, transactional_id_expiration_ms=1_000)
    client = BrokerClient(make_broker(transaction_config=config))
    init(client, "a")

    clock = client.broker.clock
    assert isinstance(clock, MockClock)
    clock.advance(config.remove_expired_interval_ms)

    assert init(client, "b").error_code == OK


def add_partitions(client: BrokerClient, name: str, who: InitProducerIdResponse, *indexes: int) -> list[int]:
    topic = AddPartitionsToTxnTopic(name="t", partitions=list(indexes))
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.producer_epoch,
        v3_and_below_topics=[topic],
    )
    (answer,) = client.send(request, 3).results_by_topic_v3_and_below
    return [row.partition_error_code for row in answer.results_by_partition]


def test_partitions_in_transactions() -> None:
    client = BrokerClient(make_broker(transaction_config=TransactionConfig(max_partitions=3)))
    client.broker.topics.create("t", 4, {})
    a, b = init(client, "a"), init(client, "b")

    added = [
        add_partitions(client, "a", a, 0, 1),
        add_partitions(client, "b", b, 0, 1),
        add_partitions(client, "a", a, 1, 2),
    ]

    assert added == [[OK, OK], [REFUSED, REFUSED], [OK, OK]]
    assert of(client.broker, "partitions in transactions") == (3, 1)


def test_a_transaction_that_ends_frees_its_partitions(tmp_path: Path) -> None:
    transactions = SqliteTransactionStore(tmp_path / "metadata.db")
    client = BrokerClient(make_broker(transactions=transactions))
    client.broker.topics.create("t", 4, {})
    who = init(client, "a")
    add_partitions(client, "a", who, 0, 1, 2)
    restarted = make_broker(transactions=transactions)

    client.send(
        EndTxnRequest(
            transactional_id="a",
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            committed=True,
        ),
        3,
    )

    assert of(restarted, "partitions in transactions") == (3, 0)
    assert of(client.broker, "partitions in transactions") == (0, 0)
    transactions.close()


def test_producer_ids_are_counted_once_per_partition() -> None:
    broker = make_broker(producer_ids=ProducerIdConfig(max_ids=3))
    topic = broker.topics.create("t", 2, {})

    codes = [
        append(broker, log, producer_id)
        for log, producer_id in zip(
            (*topic.partitions, *topic.partitions, topic.partitions[0]), (1, 1, 2, 2, 1), strict=True
        )
    ]

    assert codes == [OK, OK, OK, REFUSED, OK]
    assert of(broker, "producer ids") == (3, 1)


def append(broker: Broker, log: PartitionLog, producer_id: int) -> int:
    """Append the next batch of an idempotent producer; return the error code."""
    known = log.producers.producers.get(producer_id)
    sequence = 0 if known is None else known.last_sequence + 1
    batch = batch_of(b"v", producer=(producer_id, 0, sequence))
    try:
        log.append(batch, broker.clock.now_ms())
    except ApiError as error:
        return error.code
    return OK


def test_a_deleted_topic_and_expired_producers_make_room() -> None:
    broker = make_broker(producer_ids=ProducerIdConfig(max_ids=2, expiration_ms=10_000))
    first, second = broker.topics.create("a", 1, {}), broker.topics.create("b", 1, {})
    append(broker, first.partitions[0], 1)
    append(broker, second.partitions[0], 2)

    broker.topics.delete(first)
    after_deletion = of(broker, "producer ids")
    second.partitions[0].producers.expire(broker.clock.now_ms() + 10_000)

    assert (after_deletion, of(broker, "producer ids")) == ((1, 0), (0, 0))


def test_producers_are_counted_again_after_a_restart(tmp_path: Path) -> None:
    metadata = MetadataStore(tmp_path / "metadata.db")
    broker = make_broker(tmp_path / "logs", metadata=metadata)
    log = broker.topics.create("a", 1, {}).partitions[0]
    for producer_id in range(5):
        append(broker, log, producer_id)
    broker.logs.close()

    config = ProducerIdConfig(max_ids=4)
    again = make_broker(tmp_path / "logs", metadata=metadata, producer_ids=config)

    assert of(broker, "producer ids") == (0, 0)
    assert of(again, "producer ids") == (5, 0)
    log = again.topics.log("a", 0)
    assert [append(again, log, producer_id) for producer_id in (4, 5)] == [OK, REFUSED]
    metadata.close()
