"""Every served version of every API gives a correct answer to a plain request.

Requests and answers pass the dispatcher as bytes. Other rules of each API are tested beside its handler.
"""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.dispatch.routes import Routes
from odradek.broker.dispatch.served import SERVED
from odradek.plugin import ClientTelemetryPayload, RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.header import RequestHeader, request_header
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.describe_cluster import DescribeClusterRequest
from odradek.wire.messages.fetch import FetchRequest
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.produce import ProduceRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, record_batches, records
from support.broker import BrokerClient
from support.data_requests import fetch_request, produce_request

TOPIC = "greetings"
EARLIEST, LATEST = -2, -1
ROUTES = Routes()


def served(request: type[Any]) -> range:
    """The versions that are parsed."""
    versions = ROUTES[request.API_KEY].versions
    return range(versions.first, versions.last + 1)


@pytest.fixture
def client() -> BrokerClient:
    """A client of a broker with one topic of one partition."""
    client = BrokerClient()
    client.broker.topics.create(TOPIC, 1, {})
    return client


def topic_id(client: BrokerClient) -> bytes:
    topic = client.broker.topics.named(TOPIC)
    assert topic is not None
    return topic.id


def append(client: BrokerClient, value: bytes) -> None:
    """Append one record directly to the log."""
    now_ms = client.broker.clock.now_ms()
    client.broker.topics.log(TOPIC, 0).append(build_batch([Record(b"k", value, now_ms)]), now_ms=now_ms)


@pytest.mark.parametrize("version", served(ProduceRequest))
def test_produce_appends(client: BrokerClient, version: int) -> None:
    batch = build_batch([Record(b"k", b"hello", client.broker.clock.now_ms())])

    response = client.send(produce_request(TOPIC, batch, topic_id=topic_id(client)), version)

    (partition,) = response.responses[0].partition_responses
    assert (partition.error_code, partition.base_offset) == (ErrorCode.NONE, 0)
    assert client.broker.topics.log(TOPIC, 0).log_end_offset == 1


@pytest.mark.parametrize("version", range(SERVED[0].first, ROUTES[0].versions.first))
def test_produce_that_is_advertised_and_not_served_closes_the_connection(
    client: BrokerClient, version: int
) -> None:
    frame = request_header(RequestHeader(ProduceRequest.API_KEY, version, 1, "old"), flexible=False)

    with pytest.raises(WireError, match="unsupported version"):
        client.dispatcher.answer(frame, 0, client.connection)


@pytest.mark.parametrize("version", served(FetchRequest))
def test_fetch_returns_appended_records(client: BrokerClient, version: int) -> None:
    append(client, b"hello")

    response = client.send(fetch_request(TOPIC, topic_id=topic_id(client)), version)

    (answer,) = response.responses[0].partitions
    ((header, batch),) = record_batches(answer.records)
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 1)
    assert [record.value for record in records(batch, header)] == [b"hello"]


@pytest.mark.parametrize("version", served(ListOffsetsRequest))
@pytest.mark.parametrize(("timestamp", "offset"), [(EARLIEST, 0), (LATEST, 1)])
def test_list_offsets_returns_both_ends(
    client: BrokerClient, version: int, timestamp: int, offset: int
) -> None:
    append(client, b"hello")
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name=TOPIC, partitions=[partition])

    response = client.send(ListOffsetsRequest(replica_id=-1, topics=[topic]), version)

    (answer,) = response.topics[0].partitions
    assert (answer.error_code, answer.offset) == (ErrorCode.NONE, offset)


@pytest.mark.parametrize("version", served(MetadataRequest))
def test_metadata_names_the_broker_and_the_topic(client: BrokerClient, version: int) -> None:
    wanted = [MetadataRequestTopic(name=TOPIC)]

    response = client.send(MetadataRequest(topics=wanted), version)

    assert [(broker.node_id, broker.host, broker.port) for broker in response.brokers] == [
        (1, "127.0.0.1", 9092)
    ]
    (topic,) = response.topics
    assert (topic.error_code, topic.name, len(topic.partitions)) == (ErrorCode.NONE, TOPIC, 1)
    assert topic.partitions[0].leader_id == 1


@pytest.mark.parametrize("version", served(FindCoordinatorRequest))
def test_find_coordinator_points_to_this_node(client: BrokerClient, version: int) -> None:
    several = version >= 4
    request = FindCoordinatorRequest(
        key="" if several else "group", coordinator_keys=["group"] if several else []
    )

    response = client.send(request, version)

    found = response.coordinators[0] if several else response
    assert (found.error_code, found.node_id, found.port) == (ErrorCode.NONE, 1, 9092)


@pytest.mark.parametrize("version", served(ApiVersionsRequest))
def test_api_versions_lists_every_route(client: BrokerClient, version: int) -> None:
    client.broker.telemetry.plugin.add_receiver("any", Receiver())
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")

    response = client.send(request, version)

    listed = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert response.error_code == ErrorCode.NONE
    assert listed == {key: (each.first, each.last) for key, each in SERVED.items()}
    known = "test" if version >= 3 else "unknown"
    assert client.connection.client_software_name == known


def test_api_versions_above_the_range_is_answered_with_the_range(client: BrokerClient) -> None:
    frame = request_header(RequestHeader(ApiVersionsRequest.API_KEY, 99, 1, "new"), flexible=True)

    answer = client.dispatcher.answer(frame, 0, client.connection)

    # length, correlation id, error 35, one entry: key 18, versions 0 to 5
    assert answer == bytes.fromhex("00000010 00000001 0023 00000001 0012 0000 0005")


@pytest.mark.parametrize("version", served(CreateTopicsRequest))
def test_create_topics_creates(client: BrokerClient, version: int) -> None:
    wanted = CreatableTopic(name="new", num_partitions=2, replication_factor=1)

    response = client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=1_000), version)

    created = client.broker.topics.named("new")
    assert [topic.error_code for topic in response.topics] == [ErrorCode.NONE]
    assert created is not None
    assert len(created.partitions) == 2


@pytest.mark.parametrize("version", served(DeleteTopicsRequest))
def test_delete_topics_deletes(client: BrokerClient, version: int) -> None:
    if version >= 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=1_000)
    else:
        request = DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1_000)

    response = client.send(request, version)

    assert [(topic.name, topic.error_code) for topic in response.responses] == [(TOPIC, ErrorCode.NONE)]
    assert client.broker.topics.named(TOPIC) is None


@pytest.mark.parametrize("version", served(InitProducerIdRequest))
def test_init_producer_id_never_returns_an_id_twice(client: BrokerClient, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)

    responses = [client.send(request, version) for _ in range(3)]

    assert [(answer.error_code, answer.producer_epoch) for answer in responses] == [(ErrorCode.NONE, 0)] * 3
    assert len({answer.producer_id for answer in responses}) == 3


def test_init_producer_id_bumps_the_epoch_of_a_transactional_id(client: BrokerClient) -> None:
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1_000)

    responses = [client.send(request, 4) for _ in range(2)]

    assert [response.producer_epoch for response in responses] == [0, 1]
    assert responses[0].producer_id == responses[1].producer_id


@pytest.mark.parametrize("version", served(DescribeClusterRequest))
def test_describe_cluster_shows_one_broker_that_is_the_controller(client: BrokerClient, version: int) -> None:
    response = client.send(DescribeClusterRequest(), version)

    assert (response.error_code, response.controller_id) == (ErrorCode.NONE, 1)
    assert [(broker.broker_id, broker.port) for broker in response.brokers] == [(1, 9092)]


class Receiver:
    """A receiver that stores every payload."""

    def __init__(self) -> None:
        self.pushes: list[tuple[str | None, bytes]] = []

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.pushes.append((context.client_id, payload.data))


def test_get_and_push_telemetry_reach_a_receiver(client: BrokerClient) -> None:
    receiver = Receiver()
    client.broker.telemetry.plugin.add_receiver("any", receiver)
    client.broker.telemetry.update_subscription("all", {"metrics": "*"})
    empty_resource_metrics = b"\x0a\x00"

    subscription = client.send(GetTelemetrySubscriptionsRequest(), 0)
    response = client.send(
        PushTelemetryRequest(
            client_instance_id=subscription.client_instance_id,
            subscription_id=subscription.subscription_id,
            metrics=empty_resource_metrics,
        ),
        0,
    )

    assert (subscription.error_code, subscription.requested_metrics) == (ErrorCode.NONE, ["*"])
    assert response.error_code == ErrorCode.NONE
    assert receiver.pushes == [("test", empty_resource_metrics)]


@pytest.mark.parametrize("key", sorted(ROUTES.keys() - {ApiVersionsRequest.API_KEY}))
def test_a_version_above_the_range_closes_the_connection(client: BrokerClient, key: int) -> None:
    above = SERVED[key].last + 1
    frame = request_header(RequestHeader(key, above, 1, "new"), flexible=True)

    with pytest.raises(WireError, match="unsupported version"):
        client.dispatcher.answer(frame, 0, client.connection)


@pytest.mark.parametrize("key", sorted(set(range(95)) - ROUTES.keys()))
def test_an_api_that_is_not_served_closes_the_connection(client: BrokerClient, key: int) -> None:
    frame = request_header(RequestHeader(key, 0, 1, "other"), flexible=False)

    with pytest.raises(WireError, match="unknown api key"):
        client.dispatcher.answer(frame, 0, client.connection)
