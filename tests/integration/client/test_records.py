"""The producer and the reader against a scripted broker that refuses."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.client.errors import ClientError, RequestFailed
from odradek.client.fetch import Reader
from odradek.client.producer import Producer
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, parse_header
from support.scripted_cluster import scripted_cluster

AT = ("t", 0)
RECORDS = [Record(None, b"a", 1), Record(None, b"b", 2)]
IDENTITY = InitProducerIdResponse(producer_id=7, producer_epoch=3)


def acknowledged(code: ErrorCode, offset: int = 0, message: str | None = None) -> ProduceResponse:
    row = PartitionProduceResponse(index=0, error_code=code, base_offset=offset, error_message=message)
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[row])])


def written(*answers: ProduceResponse) -> dict[type[Any], Any]:
    """Answers to a producer, one after the other."""
    left = list(answers)
    return {InitProducerIdRequest: lambda request: IDENTITY, ProduceRequest: lambda request: left.pop(0)}


def batch_of(request: ProduceRequest) -> bytes:
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    return bytes(partition.records or b"")


def test_a_refused_batch_is_sent_again_with_the_same_sequence() -> None:
    answers = written(
        acknowledged(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        acknowledged(ErrorCode.NONE, 5),
        acknowledged(ErrorCode.NONE, 7),
    )
    with scripted_cluster(answers, {"t": 1}) as (broker, admin):
        producer = Producer(admin)
        offsets = producer.send({AT: RECORDS})
        producer.send({AT: RECORDS})

        first, again, following = map(batch_of, broker.of(ProduceRequest))

    assert offsets == {AT: 5}
    assert again == first
    headers = [parse_header(batch) for batch in (first, following)]
    assert [(each.producer_id, each.producer_epoch, each.base_sequence) for each in headers] == [
        (7, 3, 0),
        (7, 3, 2),
    ]


def test_a_duplicate_has_been_written_before() -> None:
    answers = written(acknowledged(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, 5))
    with scripted_cluster(answers, {"t": 1}) as (_, admin):
        assert Producer(admin).send({AT: RECORDS}) == {AT: 5}


def test_a_leader_alone_needs_no_identity() -> None:
    answers = {ProduceRequest: lambda request: acknowledged(ErrorCode.NONE)}
    with scripted_cluster(answers, {"t": 1}) as (broker, admin):
        Producer(admin, acks=1).send({AT: RECORDS})

        (request,) = broker.of(ProduceRequest)

    assert request.acks == 1
    assert parse_header(batch_of(request)).producer_id == -1


def test_a_refusal_names_the_partition_and_the_reason() -> None:
    answers = written(acknowledged(ErrorCode.INVALID_RECORD, message="a key is needed"))
    with scripted_cluster(answers, {"t": 1}) as (_, admin):
        producer = Producer(admin)
        with pytest.raises(RequestFailed, match="t-0: INVALID_RECORD: a key is needed"):
            producer.send({AT: RECORDS})


def test_a_topic_that_the_broker_does_not_create_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.client.producer.CREATION_S", 0.01)
    with scripted_cluster(written(), {"t": 1}) as (_, admin):
        producer = Producer(admin)
        assert producer.partitions("t") == 1
        with pytest.raises(RequestFailed, match="never: UNKNOWN_TOPIC_OR_PARTITION"):
            producer.partitions("never")


def fetched(code: ErrorCode, records: bytes = b"") -> FetchResponse:
    row = PartitionData(partition_index=0, error_code=code, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[row])])


def read(*answers: FetchResponse) -> dict[type[Any], Any]:
    left = list(answers)
    return {FetchRequest: lambda request: left.pop(0)}


def test_a_temporary_refusal_is_remembered_and_the_position_stays() -> None:
    batch = build_batch(RECORDS, base_offset=4)
    answers = read(fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER), fetched(ErrorCode.NONE, batch))
    with scripted_cluster(answers, {"t": 1}) as (_, admin):
        reader = Reader(admin.cluster, {AT: 5})
        assert list(reader.poll()) == []
        assert reader.refusal is not None
        (received,) = reader.poll()

    assert (received.record.offset, received.record.value) == (5, b"b")
    assert reader.refusal is None
    assert reader.positions == {AT: 6}


def test_the_position_follows_the_records_that_were_taken() -> None:
    answers = read(fetched(ErrorCode.NONE, build_batch(RECORDS)))
    with scripted_cluster(answers, {"t": 1}) as (_, admin):
        reader = Reader(admin.cluster, {AT: 0})
        next(reader.poll())

    assert reader.positions == {AT: 1}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (fetched(ErrorCode.OFFSET_OUT_OF_RANGE), "t-0: OFFSET_OUT_OF_RANGE"),
        (fetched(ErrorCode.NONE, bytes(100)), "t-0: unreadable records"),
    ],
)
def test_a_partition_that_cannot_be_read_is_an_error(answer: FetchResponse, message: str) -> None:
    with scripted_cluster(read(answer), {"t": 1}) as (_, admin):
        reader = Reader(admin.cluster, {AT: 0})
        with pytest.raises(ClientError, match=message):
            list(reader.poll())
