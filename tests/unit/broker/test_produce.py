from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.dispatch.routes import CloseConnection
from odradek.wire.compression import Codec, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.batches import NOW_MS, altered, batch_of, values_from
from support.broker import BrokerClient

VERSIONS = range(ProduceRequest.VERSIONS.first, ProduceRequest.VERSIONS.last + 1)
INVALID_RECORD, TOO_LARGE = ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE


@pytest.fixture
def client() -> BrokerClient:
    """Topics ``t`` of two partitions, ``compacted`` and ``timely``."""
    client = BrokerClient()
    client.broker.topics.create("t", 2, {})
    client.broker.topics.create("compacted", 1, {"cleanup.policy": "compact"})
    client.broker.topics.create("timely", 1, {"message.timestamp.before.max.ms": "1000"})
    return client


def data(
    client: BrokerClient, records: bytes | None, *, topic: str = "t", index: int = 0
) -> TopicProduceData:
    known = client.broker.topics.named(topic)
    partition = PartitionProduceData(index=index, records=records)
    return TopicProduceData(name=topic, topic_id=known.id if known else b"?" * 16, partition_data=[partition])


def produce(client: BrokerClient, *topics: TopicProduceData, version: int = 13, acks: int = -1) -> Any:
    return client.send(ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=list(topics)), version)


def outcomes(response: Any) -> list[PartitionProduceResponse]:
    return [partition for topic in response.responses for partition in topic.partition_responses]


def outcome(
    client: BrokerClient, records: bytes | None, version: int = 13, **where: Any
) -> PartitionProduceResponse:
    """The result of one batch."""
    (only,) = outcomes(produce(client, data(client, records, **where), version=version))
    return only


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_take_no_records(client: BrokerClient, name: str) -> None:
    answer = outcome(client, batch_of(b"a"), 12, topic=name)

    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", VERSIONS)
def test_the_answer_has_the_offset_of_the_batch(client: BrokerClient, version: int) -> None:
    outcome(client, batch_of(b"a", b"b"), version)

    second = outcome(client, batch_of(b"c"), version)

    assert (second.error_code, second.base_offset, second.log_append_time_ms) == (0, 2, -1)
    assert second.log_start_offset == (0 if version >= 5 else -1)
    assert (second.record_errors, second.error_message) == ([], None)
    assert values_from(client.broker.topics.log("t", 0)) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_log_append_time_is_returned(client: BrokerClient) -> None:
    client.broker.topics.create("stamped", 1, {"message.timestamp.type": "LogAppendTime"})

    answer = outcome(client, batch_of(b"a", timestamp_ms=5), topic="stamped")

    assert answer.log_append_time_ms == client.broker.clock.now_ms()


@pytest.mark.parametrize("acks", [1, -1])
def test_partitions_are_appended_or_refused_independently(client: BrokerClient, acks: int) -> None:
    good, bad = batch_of(b"a"), b"\0" * 70

    response = produce(
        client,
        data(client, good),
        data(client, bad, index=1),
        data(client, good, topic="compacted"),
        acks=acks,
    )

    assert [answer.error_code for answer in outcomes(response)] == [0, ErrorCode.CORRUPT_MESSAGE, 0]


def test_version_13_answers_with_the_id(client: BrokerClient) -> None:
    wanted = data(client, batch_of(b"a"))

    response = produce(client, wanted)

    assert [(topic.name, topic.topic_id) for topic in response.responses] == [("", wanted.topic_id)]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_topic_is_refused(client: BrokerClient, version: int) -> None:
    answer = outcome(client, batch_of(b"a"), version, topic="nowhere")

    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (answer.error_code, answer.base_offset) == (unknown, -1)


@pytest.mark.parametrize("index", [2, -1, 2**31 - 1, -(2**31)])
def test_an_unknown_partition_is_refused(client: BrokerClient, index: int) -> None:
    answer = outcome(client, batch_of(b"a"), index=index)

    assert (answer.error_code, answer.index) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, index)


def test_an_empty_request_has_an_empty_answer(client: BrokerClient) -> None:
    response = produce(client)

    assert response.responses == []


@pytest.mark.parametrize("acks", [2, -2, 5, 32_767, -32_768])
def test_unknown_acks_refuse_every_partition(client: BrokerClient, acks: int) -> None:
    response = produce(client, data(client, batch_of(b"a")), data(client, batch_of(b"a"), index=1), acks=acks)

    assert [answer.error_code for answer in outcomes(response)] == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
    assert client.broker.topics.log("t", 0).log_end_offset == 0


def test_acks_are_looked_at_after_topics_and_before_the_content_of_batches(client: BrokerClient) -> None:
    response = produce(
        client,
        data(client, damaged(GOOD, len(GOOD) - 1)),
        data(client, batch_of(b"a"), index=7),
        data(client, GOOD + GOOD, index=1),
        acks=2,
    )

    codes = [ErrorCode.INVALID_REQUIRED_ACKS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, INVALID_RECORD]
    assert [answer.error_code for answer in outcomes(response)] == codes


def damaged(batch: bytes, position: int) -> bytes:
    return batch[:position] + bytes([batch[position] ^ 1]) + batch[position + 1 :]


GOOD = batch_of(b"a")


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, INVALID_RECORD),
        (b"", INVALID_RECORD),
        (b"abc", INVALID_RECORD),
        (GOOD[:-1], INVALID_RECORD),
        (GOOD + GOOD, INVALID_RECORD),
        (damaged(GOOD, len(GOOD) - 1), ErrorCode.CORRUPT_MESSAGE),
        (damaged(GOOD, 16), ErrorCode.CORRUPT_MESSAGE),
        (batch_of(b"x" * 1_100_000), TOO_LARGE),
        (build_batch([Record(b"k", b"v")], base_offset=7), INVALID_RECORD),
        (build_batch([Record(b"k", b"v")], control=True), INVALID_RECORD),
        (build_batch([Record(b"k", b"v")], transactional=True), ErrorCode.INVALID_TXN_STATE),
        (build_batch([Record(b"k", b"v")], producer_id=5, producer_epoch=0), INVALID_RECORD),
    ],
    ids=[
        "null", "empty", "no-header", "cut", "two-batches", "crc", "magic", "too-large", "base-offset",
        "control", "transactional", "no-sequence",
    ],
)  # fmt: skip
def test_an_invalid_batch_is_refused(client: BrokerClient, records: bytes | None, code: ErrorCode) -> None:
    answer = outcome(client, records)

    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert answer.error_message
    assert answer.record_errors == []
    assert client.broker.topics.log("t", 0).log_end_offset == 0


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, 0)])
def test_zstd_needs_version_7(client: BrokerClient, version: int, code: int) -> None:
    answer = outcome(client, batch_of(b"a", codec=Codec.ZSTD), version)

    assert answer.error_code == code


@pytest.mark.parametrize("version", VERSIONS)
def test_records_without_a_key_are_listed_for_a_compacted_topic(client: BrokerClient, version: int) -> None:
    batch = build_batch([Record(b"k", b"a", NOW_MS), Record(None, b"b", NOW_MS), Record(None, b"c", NOW_MS)])

    answer = outcome(client, batch, version, topic="compacted")

    assert (answer.error_code, answer.base_offset) == (INVALID_RECORD, -1)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert [error.batch_index for error in answer.record_errors] == ([1, 2] if version >= 8 else [])
    assert all("key" in (error.batch_index_error_message or "") for error in answer.record_errors)
    assert bool(answer.error_message) == (version >= 8)
    assert client.broker.topics.log("compacted", 0).log_end_offset == 0


def test_records_with_a_wrong_timestamp_are_listed(client: BrokerClient) -> None:
    now_ms = client.broker.clock.now_ms()
    batch = build_batch([Record(b"k", b"a", now_ms), Record(b"k", b"b", 5), Record(b"k", b"c", -1)])

    answer = outcome(client, batch, topic="timely")

    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [1]


def test_a_repeated_batch_gets_its_first_offset(client: BrokerClient) -> None:
    producer_id = client.send(InitProducerIdRequest(transactional_id=None), 5).producer_id
    first = batch_of(b"a", producer=(producer_id, 0, 0))
    second = batch_of(b"b", producer=(producer_id, 0, 1))

    answers = [outcome(client, batch) for batch in (first, second, first, second)]

    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 1), (0, 0), (0, 1)]
    assert client.broker.topics.log("t", 0).log_end_offset == 2


@pytest.mark.parametrize(
    ("producer", "code"),
    [((7, 2, 5), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), ((7, 1, 1), ErrorCode.INVALID_PRODUCER_EPOCH)],
)
def test_an_idempotent_producer_must_send_in_order(
    client: BrokerClient, producer: tuple[int, int, int], code: ErrorCode
) -> None:
    outcome(client, batch_of(b"a", producer=(7, 2, 0)))

    answer = outcome(client, batch_of(b"b", producer=producer))

    assert answer.error_code == code


@pytest.mark.parametrize("version", VERSIONS)
def test_without_acks_there_is_no_answer(client: BrokerClient, version: int) -> None:
    response = produce(client, data(client, batch_of(b"a")), version=version, acks=0)

    assert response is None
    assert client.broker.topics.log("t", 0).log_end_offset == 1


@pytest.mark.parametrize("topic", ["t", "nowhere"])
def test_without_acks_a_refusal_closes_the_connection(client: BrokerClient, topic: str) -> None:
    good, bad = data(client, batch_of(b"a"), index=1), data(client, b"bad", topic=topic)

    with pytest.raises(CloseConnection, match="acks=0"):
        produce(client, bad, good, acks=0)

    assert client.broker.topics.log("t", 1).log_end_offset == 1


def test_without_acks_a_bug_closes_the_connection(
    client: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.broker.handlers.produce.append_batch", None)

    with pytest.raises(CloseConnection, match="UNKNOWN_SERVER_ERROR"):
        produce(client, data(client, batch_of(b"a")), acks=0)

    assert client.dispatcher.unexpected_errors == 1


def test_many_partitions_in_one_request(client: BrokerClient) -> None:
    client.broker.topics.create("wide", 200, {})
    topics = [data(client, batch_of(b"a"), topic="wide", index=index) for index in range(200)]

    response = produce(client, *topics)

    assert {answer.error_code for answer in outcomes(response)} == {0}
    assert {log.log_end_offset for log in client.broker.topics.by_name["wide"].partitions} == {1}


def test_of_a_repeated_partition_the_last_counts(client: BrokerClient) -> None:
    twice = data(client, batch_of(b"first"))
    twice.partition_data += data(client, batch_of(b"last")).partition_data

    answers = outcomes(produce(client, twice))

    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0)]
    assert values_from(client.broker.topics.log("t", 0)) == [(0, b"last")]


def test_a_batch_of_too_many_records_is_too_large(client: BrokerClient) -> None:
    most = client.broker.settings.produce_batch_max_records
    count = most + 1
    claim = altered(
        batch_of(b"a", codec=Codec.ZSTD),
        body=compress(Codec.ZSTD, b"\x0c\x00\x00\x00\x01\x01\x00" * count),
        record_count=count,
        last_offset_delta=count - 1,
    )

    refusal = outcome(client, claim)

    assert (refusal.error_code, refusal.base_offset) == (TOO_LARGE, -1)
    assert refusal.error_message == f"batch of {count} records, at most {most} allowed"
