"""The limits of topics, users, quotas and names."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.broker_settings import BrokerSettings
from odradek.metadata.store import MetadataStore
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.describe_cluster import DescribeClusterRequest
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.broker import BrokerClient, make_broker
from support.state_limits import (
    OK,
    REFUSED,
    commit,
    configure_group,
    create_topics,
    init,
    join_classic,
    join_consumer,
    of,
    set_password,
    set_quota,
)

LONG = "x" * 1_025

UNKNOWN_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
"""Of a topic that has just been created: the client asks again."""


def test_topics() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_topics=2)))

    codes = create_topics(client, a=1, b=1, c=1)
    client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=1_000))

    assert codes == [OK, OK, REFUSED]
    assert create_topics(client, d=1, e=1) == [OK, REFUSED]
    assert of(client.broker, "topics") == (2, 2)


def test_partitions() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_partitions=10)))

    codes = create_topics(client, a=6, b=5, c=3)
    grown = [grow(client, "c", count) for count in (5, 4)]

    assert codes == [OK, REFUSED, OK]
    assert grown == [REFUSED, OK]
    assert of(client.broker, "partitions") == (10, 2)


def grow(client: BrokerClient, name: str, count: int) -> int:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    (answer,) = client.send(CreatePartitionsRequest(topics=[topic], timeout_ms=1_000)).results
    code: int = answer.error_code
    return code


def test_topics_that_are_created_by_asking_for_them() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_topics=2)))
    topics = [MetadataRequestTopic(name=name) for name in ("a", "b", "c")]

    answer = client.send(MetadataRequest(topics=topics))

    assert [row.error_code for row in answer.topics] == [UNKNOWN_TOPIC, UNKNOWN_TOPIC, REFUSED]


def test_stored_topics_beyond_the_limit_are_loaded(tmp_path: Path) -> None:
    metadata = MetadataStore(tmp_path / "metadata.db")
    client = BrokerClient(make_broker(tmp_path / "logs", metadata=metadata))
    create_topics(client, a=2, b=2, c=2)
    client.broker.logs.close()

    settings = BrokerSettings(max_topics=1, max_partitions=1)
    client = BrokerClient(make_broker(tmp_path / "logs", metadata=metadata, settings=settings))

    assert [each.name for each in client.broker.topics] == ["a", "b", "c"]
    assert create_topics(client, d=1) == [REFUSED]
    assert (of(client.broker, "topics"), of(client.broker, "partitions")) == ((3, 1), (6, 0))
    metadata.close()


def test_users() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_users=2)))

    codes = set_password(client, "a", "b", "c") + set_password(client, "b", "d")

    assert codes == [OK, OK, REFUSED, OK, REFUSED]
    assert of(client.broker, "SCRAM users") == (2, 2)


def test_quota_entities() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_client_quotas=2)))

    codes = set_quota(client, "a", "b", "c", validate_only=True) + set_quota(client, "a", "b", "c")

    assert codes == [OK, OK, REFUSED] * 2
    assert set_quota(client, "b") == [OK]
    assert of(client.broker, "quota entities") == (2, 2)


def test_a_long_client_id_is_refused_by_every_api() -> None:
    client = BrokerClient(client_id=LONG)

    answers = [
        client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1")),
        client.send(GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16))),
    ]

    assert [answer.error_code for answer in answers] == [REFUSED, ErrorCode.INVALID_REQUEST]
    assert not client.broker.telemetry.instances()
    assert client.broker.names.refusals.number == 2


def test_long_names_create_nothing() -> None:
    client = BrokerClient()
    client.broker.topics.create("t", 1, {})

    codes = [
        join_classic(client, LONG),
        join_consumer(client, LONG),
        commit(client, LONG),
        *configure_group(client, LONG),
        init(client, LONG).error_code,
        *set_password(client, LONG),
        *set_quota(client, LONG),
        client.send(ApiVersionsRequest(client_software_name=LONG, client_software_version="1")).error_code,
    ]

    assert codes == [REFUSED] * 8
    present = {limit.kind for limit in client.broker.state_limits if limit.count()}
    assert present == {"topics", "partitions"}


def test_the_setting_is_named() -> None:
    client = BrokerClient(client_id=LONG)

    answer = client.send(DescribeClusterRequest())

    assert answer.error_message == "name.max.length allows 1024 characters: the client id has 1025."


def test_a_stored_group_with_a_long_name_goes_on() -> None:
    client = BrokerClient()
    client.broker.topics.create("t", 1, {})
    client.broker.groups.make_simple_group(LONG)

    assert [join_classic(client, LONG), commit(client, LONG)] == [OK, OK]
