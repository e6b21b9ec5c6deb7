"""The contents of the host of `bench.elements`, and the largest requests that real tools send to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from odradek.wire.compression import Codec
from odradek.wire.config_resource import ResourceType
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.batches import NOW_MS, batch_of
from support.element_requests import WIDE, Contents, Topic
from support.wire_client import WireClient

WIDE_PARTITIONS = 1_000
TOPICS = 500
NAMES = 1_000
"""Groups, clients with quotas and transactional ids."""
ENTITIES = 6_800
"""Quota entities in one request: with three elements each, as many as a request can have."""
TIMED = "timed"
TIMED_PARTITIONS = 50
TIMED_RECORDS = 20_000
"""In the one batch of each of these partitions."""
USERS = 10_000
"""Users in one request: Kafka's limit."""
MEMBERS = 1_000
ASSIGNMENT_INTERVAL_S = 1.05
"""A little more than the default of ``group.consumer.assignment.interval.ms``."""

Request = Any | Callable[[int], Any]
"""A request, or a function that makes the one of a round."""


def fill(client: WireClient) -> Contents:
    """Create topics, groups, quotas and transactional ids."""
    sizes = {WIDE: WIDE_PARTITIONS, TIMED: TIMED_PARTITIONS, **{f"topic-{i}": 1 for i in range(TOPICS)}}
    created = client.send(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=n, replication_factor=1) for name, n in sizes.items()
            ]
        )
    )
    assert not any(topic.error_code for topic in created.topics), created.topics[0]
    topics = [Topic(topic.name, topic.topic_id, topic.num_partitions) for topic in created.topics]
    contents = Contents(
        topics=[topics[0], *topics[2:]],
        groups=[f"group-{i}" for i in range(NAMES)],
        users=[f"user-{i}" for i in range(NAMES)],
        clients=[f"client-{i}" for i in range(NAMES)],
        transactional_ids=[f"id-{i}" for i in range(NAMES)],
        batch=batch_of(b"value"),
    )
    client.send(quotas(contents.clients, 1e6))
    for group in contents.groups:
        client.send(commit(group, topics[0], range(10)))
    client.send(commit(contents.groups[0], topics[0], range(WIDE_PARTITIONS)))
    for each in contents.transactional_ids:
        client.send(InitProducerIdRequest(transactional_id=each, transaction_timeout_ms=60_000), 4)
    times = batch_of(*[b"v"] * TIMED_RECORDS, codec=Codec.ZSTD)
    for index in range(TIMED_PARTITIONS):
        data = [PartitionProduceData(index=index, records=times)]
        topic = TopicProduceData(topic_id=topics[1].id, partition_data=data)
        client.send(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[topic]))
    return contents


def quotas(clients: Iterable[str], rate: float) -> AlterClientQuotasRequest:
    """Set one quota for each client."""
    return AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[EntityData(entity_type="client-id", entity_name=name)],
                ops=[OpData(key="producer_byte_rate", value=rate)],
            )
            for name in clients
        ]
    )


def commit(group: str, topic: Topic, partitions: range) -> OffsetCommitRequest:
    offsets = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=0) for index in partitions
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(topic_id=topic.id, partitions=offsets)],
    )


def describe(kind: ResourceType, name: str, times: int) -> DescribeConfigsRequest:
    """Describe one resource many times, with everything that a client can ask for."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    return DescribeConfigsRequest(
        resources=[resource] * times, include_synonyms=True, include_documentation=True
    )


def large_requests(client: WireClient, only: str) -> Iterator[tuple[str, Request]]:
    """Requests that are expensive for other reasons than the number of their elements; those whose titles
    contain a text.
    """
    yield from ((title, request) for title, request in stateless_requests() if only in title)
    for assignor in ("uniform", "range"):
        for subscriptions, subscribed in SUBSCRIPTIONS.items():
            title = f"ConsumerGroupHeartbeat, {assignor} of {subscriptions}"
            if only not in title:
                continue
            for number in range(MEMBERS):
                client.send(heartbeat(title, assignor, f"member-{number}", subscribed(number)))
            yield title, joining(title, assignor, subscribed)
            yield f"ConsumerGroupDescribe, {title}", ConsumerGroupDescribeRequest(group_ids=[title])


def stateless_requests() -> Iterator[tuple[str, Request]]:
    """Requests that need nothing but `fill`."""
    yield "DescribeConfigs, 20 000 times the broker", describe(ResourceType.BROKER, "1", 20_000)
    yield "DescribeConfigs, 20 000 times a topic", describe(ResourceType.TOPIC, WIDE, 20_000)
    yield "Metadata of all topics", MetadataRequest(topics=None)
    yield (
        "Metadata that creates 2000 topics",
        lambda number: MetadataRequest(
            topics=[MetadataRequestTopic(name=f"auto.{number}.{i}") for i in range(2_000)]
        ),
    )
    yield "DescribeLogDirs of all topics", DescribeLogDirsRequest(topics=None)
    yield (
        f"AlterClientQuotas of {ENTITIES} entities",
        lambda number: quotas([f"quota-{i}" for i in range(ENTITIES)], 1e6 + number),
    )
    yield (
        f"AlterUserScramCredentials of {USERS} users",
        lambda number: AlterUserScramCredentialsRequest(
            upsertions=[
                ScramCredentialUpsertion(
                    name=f"user-{i}",
                    mechanism=1,
                    iterations=4_096 + number,
                    salt=b"salt",
                    salted_password=b"password",
                )
                for i in range(USERS)
            ]
        ),
    )
    yield (
        "CreateTopics, 10 of 1000 partitions",
        lambda number: CreateTopicsRequest(
            topics=[
                CreatableTopic(name=f"big-{number}-{i}", num_partitions=1_000, replication_factor=1)
                for i in range(10)
            ]
        ),
    )
    yield (
        "DeleteTopics, 10 of 1000 partitions",
        lambda number: DeleteTopicsRequest(
            timeout_ms=60_000, topics=[DeleteTopicState(name=f"big-{number}-{i}") for i in range(10)]
        ),
    )
    timestamps = [ListOffsetsPartition(partition_index=i, timestamp=NOW_MS) for i in range(TIMED_PARTITIONS)]
    yield (
        "ListOffsets, by time in large batches",
        ListOffsetsRequest(topics=[ListOffsetsTopic(name=TIMED, partitions=timestamps)]),
    )


SUBSCRIPTIONS: dict[str, Callable[[int], list[str]]] = {
    "equal subscriptions": lambda _: [f"topic-{i}" for i in range(200)],
    "mixed subscriptions": lambda number: [f"topic-{(number * 7 + i * 13) % 300}" for i in range(100)],
    "mixed subscriptions and a wide topic": lambda number: [
        WIDE,
        *[f"topic-{(number + i) % 100}" for i in range(5)],
    ],
}
"""The topics of a member by its number."""


def joining(group: str, assignor: str, subscribed: Callable[[int], list[str]]) -> Callable[[int], Any]:
    """A member joins when the next assignment is due."""

    def join(number: int) -> ConsumerGroupHeartbeatRequest:
        time.sleep(ASSIGNMENT_INTERVAL_S)
        return heartbeat(group, assignor, f"late-{number}", subscribed(MEMBERS + number))

    return join


def heartbeat(group: str, assignor: str, member: str, topics: list[str]) -> ConsumerGroupHeartbeatRequest:
    """A member joins."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        server_assignor=assignor,
        subscribed_topic_names=topics,
        topic_partitions=[],
    )
