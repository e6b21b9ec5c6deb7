from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.broker_settings import BrokerSettings
from odradek.log.log_config import LogConfig
from odradek.wire.config_resource import ConfigSource
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.types import NIL_UUID
from support.broker import BrokerClient, make_broker

VERSIONS = range(CreateTopicsRequest.VERSIONS.first, CreateTopicsRequest.VERSIONS.last + 1)
EXISTS, ILLEGAL, INVALID = (
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.INVALID_REQUEST,
)


@pytest.fixture
def client() -> BrokerClient:
    return BrokerClient()


def wanted(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> CreatableTopic:
    """A topic; ``retention_ms`` stands for ``retention.ms``."""
    rows = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=rows)


def assigned(
    name: str, *rows: tuple[int, list[int]], partitions: int = -1, replicas: int = -1
) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in rows]
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, assignments=assignments
    )


def ask(client: BrokerClient, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> Any:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=1_000, validate_only=validate_only)
    return client.send(request, version)


def codes(response: Any) -> list[tuple[str, int]]:
    return [(topic.name, topic.error_code) for topic in response.topics]


def names(client: BrokerClient) -> set[str]:
    return {topic.name for topic in client.broker.topics}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_answer_has_the_fields_of_its_version(client: BrokerClient, version: int) -> None:
    response = ask(client, wanted("t", 3, retention_ms="5"), version=version)

    (told,) = response.topics
    topic = client.broker.topics.by_name["t"]
    assert (told.name, told.error_code, told.error_message) == ("t", 0, None)
    assert told.topic_id == (topic.id if version >= 7 else NIL_UUID)
    assert (told.num_partitions, told.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
    assert told.topic_config_error_code == 0
    assert bool(told.configs) == (version >= 5)
    assert (len(topic.partitions), topic.config.retention_ms) == (3, 5)


def test_the_configuration_in_force_is_returned_with_its_source() -> None:
    client = BrokerClient(make_broker(log_defaults=LogConfig(segment_ms=77)))

    response = ask(client, wanted("t", retention_ms="5"))

    values = {config.name: (config.value, config.config_source) for config in response.topics[0].configs}
    assert values["retention.ms"] == ("5", ConfigSource.TOPIC)
    assert values["segment.ms"] == ("77", ConfigSource.STATIC_BROKER)
    assert values["cleanup.policy"] == ("delete", ConfigSource.DEFAULT)
    assert list(values) == sorted(values)


def test_the_returned_configuration_equals_the_one_described_later(client: BrokerClient) -> None:
    told = ask(client, wanted("t", retention_ms="5", cleanup_policy="compact")).topics[0].configs

    described = client.send(
        DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=2, resource_name="t")])
    )

    assert [(row.name, row.value, row.config_source) for row in told] == [
        (row.name, row.value, row.config_source) for row in described.results[0].configs
    ]


def test_the_hosts_defaults_apply() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(num_partitions=4)))

    response = ask(client, wanted("t", -1, -1))

    assert (response.topics[0].num_partitions, response.topics[0].replication_factor) == (4, 1)
    assert len(client.broker.topics.by_name["t"].partitions) == 4


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (wanted("there"), EXISTS),
        (wanted("bad name"), ILLEGAL),
        (wanted(""), ILLEGAL),
        (wanted("x" * 250), ILLEGAL),
        (wanted("col_a"), ILLEGAL),
        (wanted("__cluster_metadata"), INVALID),
        (wanted("t", 0), ErrorCode.INVALID_PARTITIONS),
        (wanted("t", -2), ErrorCode.INVALID_PARTITIONS),
        (wanted("t", -(2**31)), ErrorCode.INVALID_PARTITIONS),
        (wanted("t", 1_001), ErrorCode.INVALID_PARTITIONS),
        (wanted("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (wanted("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (wanted("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (wanted("t", nonsense="1"), ErrorCode.INVALID_CONFIG),
        (wanted("t", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (wanted("t", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (assigned("t", (0, [1]), partitions=1), INVALID),
        (assigned("t", (0, [1]), replicas=1), INVALID),
        (assigned("t", (1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", (0, [1]), (0, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", (0, [2])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", (0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", (0, [1, 1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", (-1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        # of two errors, Kafka reports the first it finds
        (wanted("there", 0, 3, nonsense="1"), EXISTS),
        (wanted("bad name", 0, 3), ILLEGAL),
        (wanted("t", 0, 3, nonsense="1"), ErrorCode.INVALID_CONFIG),
        (wanted("t", 0, 3), ErrorCode.INVALID_PARTITIONS),
    ],
    ids=lambda value: value.name if isinstance(value, CreatableTopic) else value.name.lower(),
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_an_invalid_topic_is_refused(
    client: BrokerClient, topic: CreatableTopic, code: ErrorCode, validate_only: bool
) -> None:
    ask(client, wanted("there"), wanted("col.a"))

    response = ask(client, topic, wanted("good"), validate_only=validate_only)

    assert codes(response) == [(topic.name, code), ("good", 0)]
    assert response.topics[0].error_message
    assert names(client) == {"there", "col.a"} | (set() if validate_only else {"good"})


def test_partitions_can_be_assigned_to_this_node(client: BrokerClient) -> None:
    response = ask(client, assigned("t", (1, [1]), (0, [1])))

    assert codes(response) == [("t", 0)]
    assert len(client.broker.topics.by_name["t"].partitions) == 2


def test_a_topic_named_twice_is_refused_once(client: BrokerClient) -> None:
    response = ask(client, wanted("t"), wanted("t", 2), wanted("u"))

    assert codes(response) == [("t", INVALID), ("u", 0)]
    assert names(client) == {"u"}


def test_the_last_value_of_a_repeated_key_counts(client: BrokerClient) -> None:
    topic = wanted("t")
    topic.configs = [CreatableTopicConfig(name="retention.ms", value=value) for value in (None, "1", "2")]

    response = ask(client, topic)

    assert codes(response) == [("t", 0)]
    assert client.broker.topics.by_name["t"].config.retention_ms == 2


def test_validate_only_returns_the_same_without_an_id(client: BrokerClient) -> None:
    checked = ask(client, wanted("t", 3, retention_ms="5"), validate_only=True).topics[0]

    created = ask(client, wanted("t", 3, retention_ms="5")).topics[0]

    assert checked.topic_id == NIL_UUID
    assert (checked.num_partitions, checked.configs) == (created.num_partitions, created.configs)


@pytest.mark.parametrize(
    "topics",
    [
        [wanted("big", 10_001), wanted("small")],
        [wanted("big", 2**31 - 1), wanted("small")],
        [wanted(f"t{number}", 1_000) for number in range(11)],
        [assigned("big", *[(index, [1]) for index in range(10_001)])],
        [wanted("illegal", -(2**31)), *(wanted(f"t{number}", 1_000) for number in range(11))],
    ],
    ids=["one", "largest", "several", "assigned", "below zero"],
)
def test_too_many_partitions_refuse_the_whole_request(
    client: BrokerClient, topics: list[CreatableTopic]
) -> None:
    response = ask(client, *topics)

    assert {topic.error_code for topic in response.topics} == {ErrorCode.POLICY_VIOLATION}
    assert len(response.topics) == len(topics)
    assert names(client) == set()


def test_an_empty_request_has_an_empty_answer(client: BrokerClient) -> None:
    response = ask(client)

    assert response.topics == []
