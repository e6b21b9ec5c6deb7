"""Dead-letter topics of share groups (KIP-1191), as Kafka 4.4.0 writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.features import SHARE_VERSION
from odradek.log.partition_log import PartitionLog
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, record_batches, records
from support.batches import NOW_MS
from support.broker import BrokerClient
from support.share_consumer import ShareConsumer, share_broker

ENABLED = {"errors.deadletterqueue.group.enable": "true"}
REJECTED = "Offset rejected by client."
TOO_OFTEN = "Offset delivery count exceeded the threshold."


def consumer_of(broker: Broker, **settings: Any) -> ShareConsumer:
    """A member whose group has dead letters, and these settings."""
    groups = broker.groups
    share = replace(groups.config.share, **({"dead_letter_topic": "dlq.g"} | settings))
    groups.config = replace(groups.config, share=share)
    return ShareConsumer(broker)


@pytest.fixture
def broker() -> Broker:
    broker = share_broker()
    broker.topics.create("dlq.g", 1, ENABLED)
    return broker


@pytest.fixture
def consumer(broker: Broker) -> ShareConsumer:
    """It holds the records 0 to 9."""
    consumer = consumer_of(broker)
    consumer.append(10)
    consumer.fetch()
    return consumer


def reject(consumer: ShareConsumer, first: int, last: int) -> None:
    """Reject records, and do what comes of it."""
    assert consumer.say((first, last, 3)) == 0
    consumer.clock.advance(0)


def letters(broker: Broker, name: str = "dlq.g", partition: int = 0) -> list[Record]:
    log = broker.topics.log(name, partition)
    data = log.read(log.log_start_offset, 1 << 30)
    return [record for header, batch in record_batches(data) for record in records(batch, header)]


def about(letter: Record) -> dict[str, str]:
    return {
        name.removeprefix("__dlq.errors."): (value or b"").decode()
        for name, value in letter.headers
        if name.startswith("__dlq.errors.")
    }


def outcomes(broker: Broker) -> dict[str, int]:
    return {name: count for name, count in broker.shares.letters.records.items() if count}


def start(consumer: ShareConsumer) -> int:
    topic = consumer.broker.topics.by_name["t"]
    delivery = consumer.broker.shares.deliveries.get("g", (topic.id, 0))
    assert delivery is not None
    return delivery.partition.start


def test_a_rejected_record_is_in_the_topic_and_says_where_it_was(consumer: ShareConsumer) -> None:
    reject(consumer, 0, 1)

    found = letters(consumer.broker)
    assert [about(each) for each in found] == [
        {
            "topic": "t",
            "partition": "0",
            "offset": str(offset),
            "group": "g",
            "delivery.count": "1",
            "message": REJECTED,
        }
        for offset in (0, 1)
    ]
    assert {(each.key, each.value, each.timestamp_ms) for each in found} == {
        (None, None, consumer.clock.now_ms())
    }
    assert start(consumer) == 2
    assert outcomes(consumer.broker) == {"written": 2}


def test_a_record_that_was_delivered_too_often(broker: Broker) -> None:
    consumer = consumer_of(broker, delivery_count_limit=2)
    consumer.append(3)
    for _ in range(2):
        consumer.fetch()
        assert consumer.say((0, 2, 2)) == 0
        consumer.clock.advance(0)
    while consumer.acquired():  # alone, the last time
        consumer.clock.advance(30_000)

    assert [(about(each)["message"], about(each)["delivery.count"]) for each in letters(broker)] == [
        (TOO_OFTEN, "2")
    ] * 3
    assert broker.shares.deliveries.exhausted == 3


def test_a_lock_that_ends_the_last_time(broker: Broker) -> None:
    consumer = consumer_of(broker, delivery_count_limit=2)
    consumer.append(1)
    for _ in range(2):
        consumer.fetch()
        consumer.clock.advance(30_000)

    assert [about(each)["message"] for each in letters(broker)] == [TOO_OFTEN]


def test_accepted_records_and_gaps_are_no_dead_letters(consumer: ShareConsumer) -> None:
    assert consumer.say((0, 4, 1), (5, 9, 0)) == 0
    consumer.clock.advance(0)

    assert letters(consumer.broker) == []
    assert start(consumer) == 10


def test_records_are_copied_if_the_group_wants_that(broker: Broker) -> None:
    consumer = consumer_of(broker, copies_dead_letters=True)
    sent = [Record(b"k%d" % i, b"v" * i, NOW_MS, (("h", b"%d" % i), ("n", None))) for i in range(4)]
    for codec in (0, 1):
        broker.topics.log("t", 0).append(build_batch(sent, codec=codec), NOW_MS)
    consumer.fetch()
    reject(consumer, 1, 6)

    found = letters(broker)
    assert [(each.key, each.value) for each in found] == [
        (sent[offset % 4].key, sent[offset % 4].value) for offset in range(1, 7)
    ]
    assert {len(each.headers) for each in found} == {6}  # not those of the record
    assert [about(each)["offset"] for each in found] == [str(offset) for offset in range(1, 7)]


def test_what_the_log_has_lost_has_no_copy(broker: Broker) -> None:
    consumer = consumer_of(broker, copies_dead_letters=True)
    for _ in range(2):
        consumer.append(5)
    consumer.fetch()
    assert consumer.say((0, 9, 3)) == 0
    broker.topics.log("t", 0).delete_records(5)
    consumer.clock.advance(0)

    assert [each.value for each in letters(broker)] == [None] * 5 + [b"v"] * 5


@pytest.mark.parametrize(
    ("config", "properties", "level"),
    [
        ({}, {}, 2),
        ({"dead_letter_topic": "other"}, ENABLED, 2),
        ({"dead_letter_topic": "dlq.missing"}, ENABLED, 2),
        ({"dead_letter_topic": "dlq.a b", "makes_dead_letter_topics": True}, ENABLED, 2),
        ({"dead_letter_prefix": "x."}, ENABLED, 2),
        ({"dead_letter_topic": ""}, ENABLED, 2),
        ({}, ENABLED, 1),
    ],
)
def test_without_a_topic_that_the_group_may_use_records_are_archived_all_the_same(
    config: dict[str, Any], properties: dict[str, str], level: int
) -> None:
    broker = share_broker()
    for name in ("dlq.g", "other"):
        broker.topics.create(name, 1, properties)
    broker.features.finalize(SHARE_VERSION, level)
    consumer = consumer_of(broker, **config)
    consumer.append(10)
    consumer.fetch()
    reject(consumer, 0, 9)

    assert [letters(broker, name) for name in ("dlq.g", "other")] == [[], []]
    assert start(consumer) == 10
    assert set(outcomes(broker)) <= {"refused"}


def alter(broker: Broker, kind: ResourceType, name: str, **values: str) -> int:
    """Set ``errors.deadletterqueue`` keys of a resource; underscores stand for dots. The error."""
    configs = [
        AlterableConfig(name=f"errors.deadletterqueue.{key.replace('_', '.')}", value=value)
        for key, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    answer = BrokerClient(broker).send(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return int(answer.responses[0].error_code)


def test_an_operator_sets_the_topic_and_what_the_host_allows() -> None:
    broker = share_broker()
    assert alter(broker, ResourceType.GROUP, "g", topic_name="letters") == 0
    assert (
        alter(broker, ResourceType.BROKER, "", topic_name_prefix="let", auto_create_topics_enable="true") == 0
    )
    consumer = ShareConsumer(broker)
    consumer.append(10)
    consumer.fetch()
    reject(consumer, 0, 4)
    assert alter(broker, ResourceType.TOPIC, "letters", group_enable="false") == 0
    reject(consumer, 5, 9)

    assert len(letters(broker, "letters")) == 5
    assert outcomes(broker) == {"written": 5, "refused": 5}


@pytest.mark.parametrize(
    ("name", "code"),
    [("__consumer_offsets", 40), ("dlq.a b", 0), ("no prefix", 0), ("", 0)],
)
def test_names_of_topics_that_kafka_refuses(name: str, code: int) -> None:
    assert alter(share_broker(), ResourceType.GROUP, "g", topic_name=name) == code


def test_the_topic_is_made_if_the_host_may() -> None:
    broker = share_broker()
    consumer = consumer_of(broker, makes_dead_letter_topics=True)
    consumer.append(10)
    consumer.fetch()
    reject(consumer, 0, 9)

    assert len(letters(broker)) == 10
    topic = broker.topics.by_name["dlq.g"]
    assert (len(topic.partitions), topic.config.takes_dead_letters) == (1, True)


def test_records_go_to_the_partition_of_their_number() -> None:
    broker = share_broker(partitions=3)
    broker.topics.create("dlq.g", 2, ENABLED)
    consumer = consumer_of(broker)
    for index in range(3):
        consumer.append(1, partition=index)
    consumer.fetch(partitions=(0, 1, 2))
    broker.shares.connection_closed("m")
    topic = broker.topics.by_name["t"]
    for index in range(3):
        delivery = broker.shares.deliveries.get("g", (topic.id, index))
        assert delivery is not None
        delivery.partition.spans[0].deliveries = 5
        consumer.epoch = 0
    consumer.fetch(partitions=(0, 1, 2))
    broker.shares.connection_closed("m")
    consumer.clock.advance(0)

    found = [{about(each)["partition"] for each in letters(broker, partition=index)} for index in range(2)]
    assert found == [{"0", "2"}, {"1"}]


class Failing:
    """A log that does not take batches for a while."""

    def __init__(self, log: PartitionLog, monkeypatch: pytest.MonkeyPatch, code: ErrorCode) -> None:
        self.attempts, self.code, self.fails = 0, code, True
        self.append = log.append
        monkeypatch.setattr(PartitionLog, "append", self)

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.attempts += 1
        if self.fails:
            raise ApiError(self.code)
        return self.append(*arguments, **more)


def test_a_passing_failure_is_tried_again_and_counts_as_lag(
    consumer: ShareConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Failing(consumer.broker.topics.log("dlq.g", 0), monkeypatch, ErrorCode.KAFKA_STORAGE_ERROR)
    reject(consumer, 0, 9)
    assert (log.attempts, start(consumer)) == (1, 0)
    assert consumer.broker.shares.deliveries.given_up == 10

    log.fails = False
    consumer.clock.advance(1_000)

    assert (log.attempts, start(consumer)) == (2, 10)
    assert outcomes(consumer.broker) == {"written": 10}
    assert consumer.broker.shares.deliveries.given_up == 0


@pytest.mark.parametrize(
    ("code", "attempts"), [(ErrorCode.KAFKA_STORAGE_ERROR, 5), (ErrorCode.MESSAGE_TOO_LARGE, 1)]
)
def test_after_the_last_attempt_the_records_are_archived(
    consumer: ShareConsumer, monkeypatch: pytest.MonkeyPatch, code: ErrorCode, attempts: int
) -> None:
    log = Failing(consumer.broker.topics.log("dlq.g", 0), monkeypatch, code)
    reject(consumer, 0, 9)
    consumer.clock.advance(60_000)

    assert (log.attempts, start(consumer)) == (attempts, 10)
    assert outcomes(consumer.broker) == {"failed": 10}


def test_a_copy_that_is_too_large_is_left_out(broker: Broker) -> None:
    consumer = consumer_of(broker, copies_dead_letters=True)
    broker.topics.reconfigure(
        broker.topics.by_name["dlq.g"],
        replace(broker.topics.by_name["dlq.g"].config, max_message_bytes=2_000),
    )
    sent = [Record(b"k", b"v" * size) for size in (10, 5_000, 1_000, 1_000)]
    broker.topics.log("t", 0).append(build_batch(sent), NOW_MS)
    consumer.fetch()
    reject(consumer, 0, 3)

    assert [len(each.value or b"") for each in letters(broker)] == [10, 0, 1_000, 1_000]


def test_many_large_records_are_copied_in_pieces(broker: Broker) -> None:
    consumer = consumer_of(broker, copies_dead_letters=True)
    sent = [Record(None, b"%4d" % number * 50_000) for number in range(12)]
    for each in sent:
        broker.topics.log("t", 0).append(build_batch([each]), NOW_MS)
    consumer.append(1_500)
    consumer.fetch(max_records=2_000, max_bytes=1 << 30, batch_size=10_000)
    reject(consumer, 0, 1_511)

    found = letters(broker)
    assert [each.value for each in found] == [each.value for each in sent] + [b"v"] * 1_500
    assert [about(each)["offset"] for each in found] == [str(offset) for offset in range(1_512)]


def test_what_a_killed_host_has_not_written_is_written_after_its_start(
    consumer: ShareConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, topic_id = consumer.broker, consumer.topic_id
    log = Failing(broker.topics.log("dlq.g", 0), monkeypatch, ErrorCode.KAFKA_STORAGE_ERROR)
    reject(consumer, 3, 9)
    broker.steps.stop()
    log.fails = False
    broker.shares.deliveries.groups.clear()  # only what is stored is left

    delivery = broker.shares.deliveries.get("g", (topic_id, 0))
    consumer.clock.advance(0)

    assert delivery is not None
    assert [about(each)["message"] for each in letters(broker)] == [REJECTED] * 7
    assert [(span.first, span.last, span.state.name) for span in delivery.partition.spans] == [
        (0, 2, "AVAILABLE"),
        (3, 9, "ARCHIVED"),
    ]


def test_a_group_that_is_deleted_meanwhile(consumer: ShareConsumer, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Failing(consumer.broker.topics.log("dlq.g", 0), monkeypatch, ErrorCode.KAFKA_STORAGE_ERROR)
    reject(consumer, 0, 9)
    consumer.broker.shares.dropped("g", None)
    log.fails = False
    consumer.clock.advance(60_000)

    assert log.attempts == 1
    assert outcomes(consumer.broker) == {}
