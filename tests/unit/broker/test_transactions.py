"""All transaction handlers together, used as clients of both versions do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.group.committed_offset import CommittedOffset
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from odradek.wire.types import NIL_UUID
from support.batches import batch_of, values_from
from support.broker import BrokerClient
from support.data_requests import produce_request

TOPIC = "t"
V1_PRODUCE, V2_PRODUCE = 11, 12


@dataclass
class Producer:
    """A transactional client that the test directs."""

    client: BrokerClient
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[int, int] = field(default_factory=dict)

    def init(self) -> Producer:
        answer = self.client.send(
            InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 5
        )
        assert answer.error_code == 0
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return self

    def add(self, *partitions: int, version: int = 3, topic: str = TOPIC) -> list[int]:
        answer = self.client.send(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="tx",
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
            ),
            version,
        )
        (result,) = answer.results_by_topic_v3_and_below
        return [partition.partition_error_code for partition in result.results_by_partition]

    def produce(
        self,
        value: bytes,
        partition: int = 0,
        version: int = V1_PRODUCE,
        transactional_id: str | None = "tx",
        transactional: bool = True,
        sequence: int | None = None,
    ) -> int:
        chosen = self.sequences.get(partition, 0) if sequence is None else sequence
        records = batch_of(
            value, producer=(self.producer_id, self.epoch, chosen), transactional=transactional
        )
        request = produce_request(TOPIC, records, index=partition, transactional_id=transactional_id)
        answer = self.client.send(request, version)
        code: int = answer.responses[0].partition_responses[0].error_code
        if not code:
            self.sequences[partition] = chosen + 1
        return code

    def end(self, committed: bool, version: int = 4) -> EndTxnResponse:
        answer: EndTxnResponse = self.client.send(
            EndTxnRequest(
                transactional_id="tx",
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=committed,
            ),
            version,
        )
        if version >= 5 and not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer

    def commit_offset(self, offset: int, version: int = 3, **fields: Any) -> int:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = TxnOffsetCommitRequestTopic(
            name=TOPIC, topic_id=self.client.broker.topics.by_name[TOPIC].id, partitions=[partition]
        )
        answer = self.commit_offsets(fields.pop("topics", [topic]), version, **fields)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    def commit_offsets(
        self, topics: list[TxnOffsetCommitRequestTopic], version: int, **fields: Any
    ) -> TxnOffsetCommitResponse:
        request: dict[str, Any] = {
            "transactional_id": "tx",
            "group_id": "g",
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "topics": topics,
        }
        answer: TxnOffsetCommitResponse = self.client.send(
            TxnOffsetCommitRequest(**(request | fields)), version
        )
        return answer

    def add_offsets(self, version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=self.producer_id, producer_epoch=self.epoch, group_id="g"
        )
        code: int = self.client.send(request, version).error_code
        return code


@pytest.fixture
def client() -> Iterator[BrokerClient]:
    client = BrokerClient()
    client.broker.topics.create(TOPIC, 2, {})
    yield client
    client.broker.transactions.close()


@pytest.fixture
def producer(client: BrokerClient) -> Producer:
    return Producer(client).init()


def committed_offset(client: BrokerClient) -> CommittedOffset | None:
    topic_id = client.broker.topics.by_name[TOPIC].id
    return client.broker.groups.offsets.offset("g", (topic_id, 0))


# Version 1: AddPartitionsToTxn, Produce, EndTxn


def test_a_transaction_of_version_1_commits(client: BrokerClient, producer: Producer) -> None:
    added = producer.add(0, 1)
    produced = [producer.produce(b"a"), producer.produce(b"b"), producer.produce(b"c", partition=1)]
    log = client.broker.topics.log(TOPIC, 0)
    stable_before = log.last_stable_offset

    answer = producer.end(committed=True)

    assert (added, produced, answer.error_code) == ([0, 0], [0, 0, 0], 0)
    assert (stable_before, log.last_stable_offset) == (0, 3)
    assert [value for _, value in values_from(log)][:2] == [b"a", b"b"]
    assert log.aborted_transactions(0, 9) == []


def test_an_aborted_transaction_is_listed(client: BrokerClient, producer: Producer) -> None:
    producer.add(0)
    producer.produce(b"a")

    producer.end(committed=False)

    log = client.broker.topics.log(TOPIC, 0)
    assert log.aborted_transactions(0, 9) == [(producer.producer_id, 0, 1, 2)]


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_a_partition_that_was_not_added_refuses_the_batch(
    producer: Producer, version: int, code: int
) -> None:
    producer.add(0)

    found = producer.produce(b"x", partition=1, version=version)

    assert found == code


def test_a_batch_after_the_end_is_refused(producer: Producer) -> None:
    producer.add(0)
    producer.produce(b"a")
    producer.end(committed=True)

    code = producer.produce(b"late")

    assert code == ErrorCode.TRANSACTION_ABORTABLE


def test_a_batch_outside_its_producers_transaction_is_refused(producer: Producer) -> None:
    producer.add(0)
    producer.produce(b"a")

    code = producer.produce(b"x", transactional=False, transactional_id=None)

    assert code == ErrorCode.INVALID_TXN_STATE


def test_a_transactional_batch_needs_a_transactional_id(producer: Producer) -> None:
    producer.add(0)

    code = producer.produce(b"x", transactional_id=None)

    assert code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_batch_of_an_unknown_transactional_id_is_refused(producer: Producer) -> None:
    code = producer.produce(b"x", transactional_id="other")

    assert code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", [V1_PRODUCE, V2_PRODUCE])
def test_a_fenced_producer_cannot_write(client: BrokerClient, producer: Producer, version: int) -> None:
    Producer(client).init()

    code = producer.produce(b"x", version=version)

    assert code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
def test_a_fenced_producer_gets_an_error_of_its_version(
    client: BrokerClient, producer: Producer, version: int, code: int
) -> None:
    Producer(client).init()

    codes = [
        *producer.add(0, version=version),
        producer.add_offsets(version),
        producer.end(True, version).error_code,
    ]

    assert codes == [code] * 3


def test_partitions_are_added_all_or_none(client: BrokerClient, producer: Producer) -> None:
    codes = producer.add(0, 7)

    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert client.broker.transactions.transaction("tx").partitions == frozenset()


@pytest.mark.parametrize(
    ("version", "missing"), [(4, ErrorCode.INVALID_TXN_STATE), (5, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_brokers_add_and_verify_several_transactions(
    client: BrokerClient, producer: Producer, version: int, missing: int
) -> None:
    def ask(*, verify_only: bool, transactional_id: str = "tx") -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[1 if verify_only else 0])],
        )

    answer = client.send(
        AddPartitionsToTxnRequest(
            transactions=[
                ask(verify_only=False),
                ask(verify_only=True),
                ask(verify_only=False, transactional_id="unknown"),
            ]
        ),
        version,
    )

    codes = [
        each.topic_results[0].results_by_partition[0].partition_error_code
        for each in answer.results_by_transaction
    ]
    assert codes == [0, missing, ErrorCode.INVALID_PRODUCER_ID_MAPPING]


def test_ending_with_version_4_keeps_the_epoch(producer: Producer) -> None:
    producer.add(0)

    producer.end(committed=True)

    assert producer.add(0) == [0]


# Version 2: Produce v12, EndTxn v5


def test_a_transaction_of_version_2_commits(client: BrokerClient, producer: Producer) -> None:
    for number in range(3):
        assert producer.produce(b"v", version=V2_PRODUCE) == 0

        answer = producer.end(committed=True, version=5)

        assert (answer.error_code, answer.producer_epoch) == (0, number + 1)
    log = client.broker.topics.log(TOPIC, 0)
    assert log.last_stable_offset == log.log_end_offset == 6


def test_a_late_batch_of_the_previous_epoch_is_refused(producer: Producer) -> None:
    producer.produce(b"a", version=V2_PRODUCE)
    old_epoch = producer.epoch
    producer.end(committed=True, version=5)
    producer.epoch = old_epoch

    code = producer.produce(b"late", version=V2_PRODUCE, sequence=1)

    assert code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_new_to_a_partition_starts_with_sequence_0(producer: Producer) -> None:
    code = producer.produce(b"x", version=V2_PRODUCE, sequence=4)

    assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# Offsets


@pytest.mark.parametrize("committed", [True, False])
def test_offsets_become_visible_when_the_transaction_commits(
    client: BrokerClient, producer: Producer, committed: bool
) -> None:
    codes = [producer.add_offsets(), producer.commit_offset(42)]
    while_open = committed_offset(client)

    producer.end(committed)

    assert codes == [0, 0]
    assert while_open is None
    found = committed_offset(client)
    assert (None if found is None else found.offset) == (42 if committed else None)


def test_in_version_2_committing_offsets_adds_the_group(client: BrokerClient, producer: Producer) -> None:
    code = producer.commit_offset(42, version=5)

    producer.end(committed=True, version=5)

    found = committed_offset(client)
    assert (code, found.offset if found else None) == (0, 42)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, ErrorCode.INVALID_TXN_STATE),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"generation_id_or_member_epoch": 3}, ErrorCode.INVALID_TXN_STATE),
        ({"producer_epoch": 9}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"producer_id": 9}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": "other"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
    ids=["not added", "no group", "a generation", "another epoch", "another producer", "another id"],
)
def test_invalid_transactional_offsets_are_refused(
    client: BrokerClient, producer: Producer, fields: dict[str, Any], code: int
) -> None:
    found = producer.commit_offset(1, **fields)

    assert found == code
    assert not client.broker.groups.groups


def test_offsets_of_a_generation_need_a_group(client: BrokerClient, producer: Producer) -> None:
    producer.add_offsets()

    found = producer.commit_offset(1, generation_id_or_member_epoch=3)

    assert found == ErrorCode.ILLEGAL_GENERATION
    assert not client.broker.groups.groups


def test_the_metadata_limit_counts_characters(producer: Producer) -> None:
    partition = TxnOffsetCommitRequestPartition(committed_metadata="\u00e9" * 4096)
    producer.add_offsets()

    found = producer.commit_offset(
        1, topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
    )

    assert found == ErrorCode.NONE


def test_version_6_names_topics_by_id(client: BrokerClient, producer: Producer) -> None:
    topic_id = client.broker.topics.by_name[TOPIC].id
    offset = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=42)
    topics = [
        TxnOffsetCommitRequestTopic(topic_id=each, partitions=[offset])
        for each in (topic_id, NIL_UUID, b"?" * 16)
    ]

    answer = producer.commit_offsets(topics, version=6)

    producer.end(committed=True, version=5)
    found = committed_offset(client)
    assert found is not None
    assert found.offset == 42
    assert {topic.topic_id: topic.partitions[0].error_code for topic in answer.topics} == {
        topic_id: ErrorCode.NONE,
        NIL_UUID: ErrorCode.UNKNOWN_TOPIC_ID,
        b"?" * 16: ErrorCode.UNKNOWN_TOPIC_ID,
    }


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_generation_of_an_unknown_group_is_refused(
    client: BrokerClient, producer: Producer, version: int, code: int
) -> None:
    found = producer.commit_offset(1, version, generation_id_or_member_epoch=3)

    assert found == code
    assert not client.broker.groups.groups


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.STALE_MEMBER_EPOCH)]
)
def test_another_epoch_of_a_member_is_refused(
    client: BrokerClient, producer: Producer, version: int, code: int
) -> None:
    joined = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    epoch = client.send(joined, 1).member_epoch
    member = {"member_id": "m", "generation_id_or_member_epoch": epoch}

    found = producer.commit_offset(1, version, **(member | {"generation_id_or_member_epoch": epoch + 1}))

    assert found == code
    assert producer.commit_offset(1, version, **member) == ErrorCode.NONE


@pytest.mark.parametrize("version", [5, 6])
def test_an_unknown_topic_does_not_hide_the_error_of_the_others(
    client: BrokerClient, producer: Producer, version: int
) -> None:
    offset = TxnOffsetCommitRequestPartition(partition_index=0)
    topics = [
        TxnOffsetCommitRequestTopic(name="u", topic_id=b"?" * 16, partitions=[offset]),
        TxnOffsetCommitRequestTopic(
            name=TOPIC, topic_id=client.broker.topics.by_name[TOPIC].id, partitions=[offset]
        ),
    ]

    answer = producer.commit_offsets(topics, version, producer_epoch=9)

    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 6 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = [topic.partitions[0].error_code for topic in answer.topics]
    assert codes == [unknown, ErrorCode.INVALID_PRODUCER_EPOCH]


@pytest.mark.parametrize(
    ("topic", "partition", "code"),
    [
        (TOPIC, TxnOffsetCommitRequestPartition(partition_index=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", TxnOffsetCommitRequestPartition(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (
            TOPIC,
            TxnOffsetCommitRequestPartition(committed_metadata="x" * 4097),
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ),
    ],
    ids=["unknown partition", "unknown topic", "metadata"],
)
def test_one_invalid_offset_is_refused_alone(
    producer: Producer, topic: str, partition: TxnOffsetCommitRequestPartition, code: int
) -> None:
    producer.add_offsets()
    topics = [TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])]

    found = producer.commit_offset(1, topics=topics)

    assert found == code
