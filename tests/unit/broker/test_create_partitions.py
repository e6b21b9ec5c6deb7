from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.topics import MAX_PARTITIONS, Topics
from odradek.log.log_manager import LogManager
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker

VERSIONS = range(CreatePartitionsRequest.VERSIONS.first, CreatePartitionsRequest.VERSIONS.last + 1)
UNKNOWN, INVALID, WRONG = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_PARTITIONS,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
)


@pytest.fixture
def client() -> BrokerClient:
    client = BrokerClient(make_broker())
    client.broker.topics.create("t", 2, {"retention.ms": "7"})
    return client


def wanted(count: int, *brokers: list[int] | None, name: str = "t") -> CreatePartitionsTopic:
    """A topic with a number of partitions and, unless None, an assignment of the new ones."""
    assignments = [CreatePartitionsAssignment(broker_ids=ids) for ids in brokers if ids is not None]
    return CreatePartitionsTopic(name=name, count=count, assignments=None if None in brokers else assignments)


def ask(
    client: BrokerClient, *topics: CreatePartitionsTopic, validate_only: bool = False, version: int = 3
) -> list[tuple[str, int]]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=1_000, validate_only=validate_only)
    response = client.send(request, version)
    assert isinstance(response, CreatePartitionsResponse)
    return [(row.name, row.error_code) for row in response.results]


def count(client: BrokerClient) -> int:
    topic = client.broker.topics.named("t")
    assert topic is not None
    return len(topic.partitions)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_grows(client: BrokerClient, version: int) -> None:
    answers = ask(client, wanted(5, None), version=version)

    assert answers == [("t", 0)]
    assert count(client) == 5


def test_new_partitions_use_the_topics_configuration(client: BrokerClient) -> None:
    ask(client, wanted(3, None))

    log = client.broker.topics.log("t", 2)
    log.append(batch_of(b"v"), now_ms=NOW_MS)

    assert (log.log_end_offset, log.config.retention_ms) == (1, 7)


def test_existing_partitions_keep_their_records(client: BrokerClient) -> None:
    before = [client.broker.topics.log("t", index) for index in range(2)]

    ask(client, wanted(3, None))

    assert [client.broker.topics.log("t", index) for index in range(2)] == before


def test_listeners_of_topics_are_told_once(client: BrokerClient) -> None:
    told: list[int] = []
    client.broker.topics.listeners.append(lambda: told.append(count(client)))

    ask(client, wanted(4, None))

    assert told == [4]


def test_the_new_number_survives_a_restart(tmp_path: Path) -> None:
    broker = make_broker(tmp_path)
    broker.topics.create("t", 1, {})
    ask(BrokerClient(broker), wanted(3, None))
    broker.logs.close()

    again = Topics(broker.metadata, LogManager(tmp_path, now_ms=NOW_MS), broker.clock, lambda: bytes(16))

    assert len(again.by_name["t"].partitions) == 3


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (wanted(3, None, name="no"), UNKNOWN),
        (wanted(3, None, name=""), UNKNOWN),
        (wanted(2, None), INVALID),
        (wanted(1, None), INVALID),
        (wanted(0, None), INVALID),
        (wanted(-1, None), INVALID),
        (wanted(MAX_PARTITIONS + 1, None), INVALID),
        (wanted(2**31 - 1, None), INVALID),
        (wanted(3), WRONG),
        (wanted(3, [1], [1]), WRONG),
        (wanted(3, [2]), WRONG),
        (wanted(3, [-1]), WRONG),
        (wanted(3, []), WRONG),
        (wanted(3, [1, 1]), WRONG),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_an_invalid_number_or_assignment_is_refused(
    client: BrokerClient, topic: CreatePartitionsTopic, code: ErrorCode, validate_only: bool
) -> None:
    answers = ask(client, topic, validate_only=validate_only)

    assert answers == [(topic.name, code)]
    assert count(client) == 2


def test_an_assignment_to_this_node_is_accepted(client: BrokerClient) -> None:
    answers = ask(client, wanted(4, [1], [1]))

    assert answers == [("t", 0)]
    assert count(client) == 4


def test_validate_only_changes_nothing(client: BrokerClient) -> None:
    answers = ask(client, wanted(5, None), validate_only=True)

    assert answers == [("t", 0)]
    assert count(client) == 2


def test_a_topic_named_twice_does_not_grow(client: BrokerClient) -> None:
    client.broker.topics.create("u", 1, {})

    answers = ask(client, wanted(3, None), wanted(4, None), wanted(2, None, name="u"))

    assert answers == [("t", ErrorCode.INVALID_REQUEST), ("u", 0)]
    assert count(client) == 2


def test_an_empty_request_has_an_empty_answer(client: BrokerClient) -> None:
    assert ask(client) == []


def test_a_failing_disk_leaves_the_topic_unchanged(
    client: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = client.broker.logs.open

    def refuse_the_last(topic: str, partition: int, *rest: object) -> object:
        if partition == 3:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        return opened(topic, partition, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(client.broker.logs, "open", refuse_the_last)

    answers = ask(client, wanted(5, None))

    assert answers == [("t", ErrorCode.KAFKA_STORAGE_ERROR)]
    assert (count(client), client.broker.logs.log("t", 2)) == (2, None)
    assert client.broker.metadata.topics()[0].partitions == 2
