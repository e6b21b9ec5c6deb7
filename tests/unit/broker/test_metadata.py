from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR, TOPIC_OPERATIONS
from odradek.broker.broker_settings import BrokerSettings, Endpoint
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.types import NIL_UUID
from support.broker import BrokerClient, make_broker

VERSIONS = range(MetadataRequest.VERSIONS.first, MetadataRequest.VERSIONS.last + 1)
LATEST = MetadataRequest.VERSIONS.last
ILLEGAL, UNKNOWN = ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOWHERE = b"?" * 16


def make_client(**settings: Any) -> BrokerClient:
    """Node 5 with topics ``a`` of two partitions and ``b``."""
    client = BrokerClient(make_broker(settings=BrokerSettings(node_id=5, **settings)))
    client.broker.topics.create("a", 2, {})
    client.broker.topics.create("b", 1, {})
    return client


@pytest.fixture
def client() -> BrokerClient:
    return make_client()


def named(*names: str | None) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def topics(response: Any) -> list[tuple[int, str | None]]:
    return [(topic.error_code, topic.name) for topic in response.topics]


@pytest.mark.parametrize("version", VERSIONS)
def test_this_node_is_broker_controller_and_leader(client: BrokerClient, version: int) -> None:
    response = client.send(MetadataRequest(topics=named("a")), version)

    (topic,) = response.topics
    a = client.broker.topics.by_name["a"]
    assert [(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers] == [
        (5, "127.0.0.1", 9092, None)
    ]
    assert response.controller_id == (5 if version >= 1 else -1)
    assert response.cluster_id == (client.broker.cluster_id if version >= 2 else None)
    assert topic.topic_id == (a.id if version >= 10 else NIL_UUID)
    assert [
        (row.partition_index, row.leader_id, row.leader_epoch, row.replica_nodes, row.isr_nodes)
        for row in topic.partitions
    ] == [(index, 5, 0 if version >= 7 else -1, [5], [5]) for index in (0, 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_list_asks_for_no_topics_except_in_version_0(client: BrokerClient, version: int) -> None:
    response = client.send(MetadataRequest(topics=[]), version)

    assert topics(response) == ([(0, "a"), (0, "b")] if version == 0 else [])


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_null_asks_for_all_topics(client: BrokerClient, version: int) -> None:
    response = client.send(MetadataRequest(topics=None), version)

    assert topics(response) == [(0, "a"), (0, "b")]


def test_the_address_is_that_of_the_clients_listener(client: BrokerClient) -> None:
    client.broker.endpoints["OTHER"] = Endpoint("other.example", 1234)
    client.connection.listener_name = "OTHER"

    response = client.send(MetadataRequest(topics=[]))

    assert [(broker.host, broker.port) for broker in response.brokers] == [("other.example", 1234)]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_topic_is_created_and_known_to_the_next_request(version: int) -> None:
    client = make_client(num_partitions=3)

    first, second = (client.send(MetadataRequest(topics=named("new", "a")), version) for _ in range(2))

    assert topics(first) == [(UNKNOWN, "new"), (0, "a")]
    assert (first.topics[0].partitions, first.topics[0].topic_id) == ([], NIL_UUID)
    assert topics(second) == [(0, "new"), (0, "a")]
    assert len(second.topics[0].partitions) == 3


@pytest.mark.parametrize(("asked", "enabled"), [(False, True), (True, False), (False, False)])
def test_an_unknown_topic_is_not_created_unless_client_and_host_allow_it(asked: bool, enabled: bool) -> None:
    client = make_client(auto_create_topics_enable=enabled)

    response = client.send(MetadataRequest(topics=named("new", "bad name"), allow_auto_topic_creation=asked))

    assert topics(response) == [(UNKNOWN, "new"), (ILLEGAL, "bad name")]
    assert client.broker.topics.named("new") is None


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250])
def test_a_topic_with_an_illegal_name_is_not_created(client: BrokerClient, name: str) -> None:
    response = client.send(MetadataRequest(topics=named(name, "a")))

    assert topics(response) == [(ILLEGAL, name), (0, "a")]


def test_a_topic_whose_name_collides_is_not_created(client: BrokerClient) -> None:
    client.broker.topics.create("x.y", 1, {})

    response = client.send(MetadataRequest(topics=named("x_y")))

    assert topics(response) == [(ILLEGAL, "x_y")]


def test_an_illegal_default_creates_no_topic() -> None:
    client = make_client(num_partitions=2_000)

    response = client.send(MetadataRequest(topics=named("new")))

    assert topics(response) == [(ErrorCode.INVALID_PARTITIONS, "new")]


def test_too_many_unknown_topics_are_not_created() -> None:
    client = make_client(num_partitions=1_000)
    names = [f"new{number}" for number in range(11)]

    response = client.send(MetadataRequest(topics=named("a", *names)))

    assert topics(response) == [(0, "a"), *((UNKNOWN, name) for name in names)]
    assert len(list(client.broker.topics)) == 2


def test_one_topic_that_cannot_be_created_does_not_affect_the_others(client: BrokerClient) -> None:
    response = client.send(MetadataRequest(topics=named("x.y", "x_y", "z")))

    assert topics(response) == [(UNKNOWN, "x.y"), (ILLEGAL, "x_y"), (UNKNOWN, "z")]
    assert [row.name for row in client.broker.metadata.topics()] == ["a", "b", "x.y", "z"]


def test_a_lookup_writes_nothing(client: BrokerClient) -> None:
    client.broker.metadata.close()

    response = client.send(MetadataRequest(topics=named("a", "b")))

    assert topics(response) == [(0, "a"), (0, "b")]


def test_a_topic_named_twice_is_answered_once(client: BrokerClient) -> None:
    response = client.send(MetadataRequest(topics=named("new", "a", "new", "a")))

    assert topics(response) == [(UNKNOWN, "new"), (0, "a")]


@pytest.mark.parametrize("version", [12, 13])
def test_topics_can_be_requested_by_id(client: BrokerClient, version: int) -> None:
    a = client.broker.topics.by_name["a"]
    wanted = [MetadataRequestTopic(name=None, topic_id=each) for each in (a.id, NOWHERE, a.id)]

    response = client.send(MetadataRequest(topics=wanted), version)

    assert topics(response) == [(0, "a"), (ErrorCode.UNKNOWN_TOPIC_ID, None)]
    assert [topic.topic_id for topic in response.topics] == [a.id, NOWHERE]


@pytest.mark.parametrize("version", [12, 13])
def test_names_next_to_ids_are_ignored(client: BrokerClient, version: int) -> None:
    wanted = [MetadataRequestTopic(name="a", topic_id=NOWHERE), *named("b", None)]

    response = client.send(MetadataRequest(topics=wanted), version)

    assert topics(response) == [(ErrorCode.UNKNOWN_TOPIC_ID, None)]


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("topic_id", [NIL_UUID, NOWHERE])
def test_versions_that_cannot_return_ids_refuse_the_request(
    client: BrokerClient, version: int, topic_id: bytes
) -> None:
    wanted = [MetadataRequestTopic(name=None, topic_id=topic_id), *named("a", "new")]

    response = client.send(MetadataRequest(topics=wanted), version)

    assert topics(response) == [(ErrorCode.INVALID_REQUEST, name) for name in ("", "a", "new")]
    assert client.broker.topics.named("new") is None


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_without_name_and_id_is_refused(client: BrokerClient, version: int) -> None:
    response = client.send(MetadataRequest(topics=named(None)), version)

    assert topics(response) == [(ErrorCode.UNKNOWN_SERVER_ERROR, "")]


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
@pytest.mark.parametrize("create", [True, False])
def test_internal_topics_are_not_created(client: BrokerClient, name: str, create: bool) -> None:
    request = MetadataRequest(topics=named(name, "a"), allow_auto_topic_creation=create)

    response = client.send(request)

    assert topics(response) == [(ILLEGAL if create else UNKNOWN, name), (0, "a")]
    assert name not in client.broker.topics.by_name


def test_the_metadata_log_of_kafka_is_unknown(client: BrokerClient) -> None:
    response = client.send(MetadataRequest(topics=named("__cluster_metadata")))

    assert topics(response) == [(UNKNOWN, "__cluster_metadata")]


@pytest.mark.parametrize("version", range(8, 14))
@pytest.mark.parametrize("asked", [True, False])
def test_authorized_operations_are_returned_on_request(
    client: BrokerClient, version: int, asked: bool
) -> None:
    request = MetadataRequest(
        topics=named("a"),
        include_cluster_authorized_operations=asked,
        include_topic_authorized_operations=asked,
    )

    response = client.send(request, version)

    of_cluster = CLUSTER_OPERATIONS if asked and version <= 10 else NOT_ASKED_FOR
    assert response.cluster_authorized_operations == of_cluster
    assert response.topics[0].topic_authorized_operations == (TOPIC_OPERATIONS if asked else NOT_ASKED_FOR)


def test_operations_are_the_bits_that_kafka_sends_without_an_authorizer() -> None:
    assert (TOPIC_OPERATIONS, CLUSTER_OPERATIONS) == (3576, 8096)  # as Apache Kafka 4.3.1 answered
