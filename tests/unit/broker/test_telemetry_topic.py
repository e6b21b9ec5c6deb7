"""Clients cannot stop the host's pushes or their delivery through the telemetry topic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.broker.spool_settings import SpoolSettings, TopicProduce
from odradek.broker.telemetry_spool import BATCH_ROOM_BYTES
from odradek.broker.topics import TOPIC_RESOURCE
from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord
from odradek.topic.telemetry_topic import encode_headers, record_key
from odradek.wire.compression import Codec
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.record import Headers, Record
from odradek.wire.record_batch import build_batch
from support.broker import BrokerClient, make_spool
from support.data_requests import produce_request

TOPIC = "__client_telemetry"
TOPICS = {TOPIC, f"{TOPIC}_dead_letter"}
MAX_PUSH_BYTES = 1 << 20
SET, DELETE = 0, 1


def client_with(produce: TopicProduce = TopicProduce.CHECKED, *, internal: bool = False) -> BrokerClient:
    client = BrokerClient()
    make_spool(client.broker, SpoolSettings(partitions=2, produce=produce, internal=internal), MAX_PUSH_BYTES)
    return client


def push(client: BrokerClient) -> Record:
    data = MetricsData()
    data.resource_metrics.add().scope_metrics.add().metrics.add(name="org.x")
    context = RequestContext(client.connection, 72, 0, 1, "app", client.broker.clock.now_ms())
    payload = ClientTelemetryPayload(bytes(range(16)), terminating=False, data=data.SerializeToString())
    headers: Headers = tuple(encode_headers(TelemetryRecord(context, 1_000, payload)))
    return Record(record_key(payload.client_instance_id), payload.data, context.received_ms, headers)


def produced(client: BrokerClient, *records: Record, codec: Codec = Codec.NONE, partition: int = 0) -> Any:
    topic = client.broker.topics.named(TOPIC)
    assert topic is not None
    batch = build_batch(records, codec=codec)
    request = produce_request(TOPIC, batch, topic_id=topic.id, index=partition)
    return client.send(request).responses[0].partition_responses[0]


def shown_as_internal(client: BrokerClient) -> set[str]:
    """The topics that both ways of describing topics call internal."""
    metadata = client.send(MetadataRequest(topics=None))
    described = client.send(DescribeTopicPartitionsRequest())
    names = {topic.name for topic in metadata.topics if topic.is_internal}
    assert names == {topic.name for topic in described.topics if topic.is_internal}
    return names


def topics_of_a_pattern(client: BrokerClient) -> set[str]:
    """The topics that a member of a new group gets which subscribes to every name."""
    beat = ConsumerGroupHeartbeatRequest(
        group_id=str(len(client.broker.groups.groups)),
        member_id="m",
        rebalance_timeout_ms=1_000,
        subscribed_topic_regex=".*",
        topic_partitions=[],
    )
    joined = client.send(beat)
    again = ConsumerGroupHeartbeatRequest(
        group_id=beat.group_id, member_id="m", member_epoch=joined.member_epoch
    )
    assignment = client.send(again).assignment
    assigned = () if assignment is None else assignment.topic_partitions
    return {client.broker.topics.by_id[row.topic_id].name for row in assigned}


@pytest.mark.parametrize("internal", [True, False])
def test_the_topics_of_telemetry_are_internal_unless_set_otherwise(internal: bool) -> None:
    client = client_with(internal=internal)
    client.broker.topics.create("other", 1, {})

    assert shown_as_internal(client) == (TOPICS if internal else set())


@pytest.mark.parametrize("internal", [True, False])
def test_a_subscription_to_every_name_omits_internal_topics(internal: bool) -> None:
    client = client_with(internal=internal)
    client.broker.topics.create("other", 1, {})

    assert topics_of_a_pattern(client) == {"other"} | (set() if internal else TOPICS)


def test_the_topics_of_telemetry_are_ordinary_ones_by_default() -> None:
    assert not SpoolSettings().internal


def test_a_telemetry_topic_that_is_made_again_is_internal_from_the_beginning() -> None:
    client = client_with(internal=True)
    group = client.broker.groups
    assert topics_of_a_pattern(client) == set()

    client.broker.topics.delete(client.broker.topics.by_name[TOPIC])

    assert shown_as_internal(client) == TOPICS
    assert not any(known.is_subscribed_to(TOPIC) for known in group)


def test_records_of_the_telemetry_topic_can_be_deleted_although_it_is_internal() -> None:
    client = client_with(internal=True)
    produced(client, push(client))
    partition = DeleteRecordsPartition(partition_index=0, offset=1)

    response = client.send(
        DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=[partition])])
    )

    (row,) = response.topics[0].partitions
    assert (row.error_code, row.low_watermark) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize("codec", list(Codec))
def test_records_of_the_documented_format_are_appended(codec: Codec) -> None:
    client = client_with()
    record = push(client)

    answer = produced(client, record, record._replace(value=b""), codec=codec)

    assert (answer.error_code, answer.base_offset) == (0, 0)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", None),
        ("key", b"me"),
        ("value", None),
        ("value", b"\xff not OTLP"),
        ("headers", ()),
        ("headers", (("received_ms", b"soon"),)),
    ],
)
def test_any_other_record_is_named_and_refused(codec: Codec, field: str, value: Any) -> None:
    client = client_with()
    good = push(client)
    bad = good._replace(**{field: value if field != "headers" or not value else good.headers + value})

    answer = produced(client, good, bad, good, codec=codec)

    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1]
    assert client.broker.topics.log(TOPIC, 0).log_end_offset == 0


def test_a_topic_that_was_made_again_or_has_grown_is_checked_too() -> None:
    client = client_with()
    topics = client.broker.topics
    topic = topics.named(TOPIC)
    assert topic is not None
    topics.delete(topic)
    again = topics.named(TOPIC)
    assert again is not None
    topics.grow(again, 3)

    answer = produced(client, Record(None, b"junk"), partition=2)

    assert answer.error_code == ErrorCode.INVALID_RECORD


def test_the_topic_can_be_closed_to_clients() -> None:
    client = client_with(TopicProduce.REFUSED)

    answer = produced(client, push(client))

    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert answer.error_message == f"Cannot append to internal topic {TOPIC}"


def altered(client: BrokerClient, name: str, key: str, value: str | None, operation: int = SET) -> Any:
    config = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name, configs=[config])
    return client.send(IncrementalAlterConfigsRequest(resources=[resource])).responses[0]


@pytest.mark.parametrize("name", [TOPIC, TOPIC + "_dead_letter"])
@pytest.mark.parametrize(
    ("key", "value", "operation"),
    [
        ("max.message.bytes", "1", SET),
        ("max.message.bytes", str(MAX_PUSH_BYTES + BATCH_ROOM_BYTES - 1), SET),
        ("max.message.bytes", None, DELETE),
        ("segment.bytes", str(1 << 20), SET),
        ("cleanup.policy", "compact", SET),
        ("cleanup.policy", "compact,delete", SET),
    ],
)
def test_keys_that_would_break_the_host_are_refused(
    name: str, key: str, value: str | None, operation: int
) -> None:
    client = client_with()
    before = client.broker.metadata.resource(TOPIC_RESOURCE, name)

    answer = altered(client, name, key, value, operation)

    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert key in answer.error_message
    assert client.broker.metadata.resource(TOPIC_RESOURCE, name) == before


@pytest.mark.parametrize(
    ("key", "value"), [("retention.ms", "1000"), ("max.message.bytes", str(32 << 20)), ("segment.ms", "1000")]
)
def test_other_keys_are_an_operators_business(key: str, value: str) -> None:
    client = client_with()

    answer = altered(client, TOPIC, key, value)

    assert answer.error_code == 0
    assert client.broker.metadata.resource(TOPIC_RESOURCE, TOPIC)[key] == value


def test_the_hosts_own_batches_pass_whatever_the_topic_is_configured_as() -> None:
    client = client_with(TopicProduce.REFUSED)
    log = client.broker.topics.log(TOPIC, 0)
    log.config = replace(log.config, message_timestamp_before_max_ms=1)

    info = log.append(build_batch([push(client)._replace(timestamp_ms=5)]), 10_000, trusted_records=True)

    assert info.base_offset == 0
