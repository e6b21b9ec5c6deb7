"""Requests for the topics and groups of the world of `support.authorization.case`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from odradek.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from odradek.wire.messages.alter_client_quotas import (
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.alter_configs import AlterableConfig as OldConfig
from odradek.wire.messages.alter_configs import AlterConfigsRequest
from odradek.wire.messages.alter_configs import AlterConfigsResource as OldResource
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.authorization.case import (
    ALL,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    Ids,
)
from support.batches import batch_of


def produce(
    ids: Ids, *, by_id: bool = False, transactional: bool = False, transactional_id: str | None = None
) -> ProduceRequest:
    """A batch for a partition that no topic has, so that nothing is written."""
    producer = (0, 0, 0) if transactional else (-1, -1, -1)
    data = [
        PartitionProduceData(index=9, records=batch_of(b"x", producer=producer, transactional=transactional))
    ]
    topics = [
        TopicProduceData(topic_id=ids[name], partition_data=data)
        if by_id
        else TopicProduceData(name=name, partition_data=data)
        for name in ALL
    ]
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1_000, topic_data=topics)


def fetch(ids: Ids, *, by_id: bool = False, replica_id: int = -1) -> FetchRequest:
    wanted = [FetchPartition(partition=index, partition_max_bytes=1_000) for index in (0, 9)]
    topics = [
        FetchTopic(topic_id=ids[name], partitions=wanted)
        if by_id
        else FetchTopic(topic=name, partitions=wanted)
        for name in ALL
    ]
    return FetchRequest(
        replica_id=replica_id,
        replica_state=ReplicaState(replica_id=replica_id),
        max_bytes=1_000,
        topics=topics,
    )


def metadata(
    ids: Ids,
    names: Sequence[str] | None = ALL,
    *,
    by_id: bool = False,
    create: bool = False,
    operations: bool = False,
) -> MetadataRequest:
    topics = None
    if names is not None:
        topics = [
            MetadataRequestTopic(name=None, topic_id=ids[name]) if by_id else MetadataRequestTopic(name=name)
            for name in names
        ]
    return MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=operations,
        include_cluster_authorized_operations=operations,
    )


def offset_commit(ids: Ids, *, group: str = "club", by_id: bool = False) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(partition_index=9, committed_offset=1)]
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(topic_id=ids[name], partitions=partitions)
            if by_id
            else OffsetCommitRequestTopic(name=name, partitions=partitions)
            for name in ALL
        ],
    )


def txn_offset_commit(group: str = "club", transactional_id: str = "tx") -> TxnOffsetCommitRequest:
    partitions = [TxnOffsetCommitRequestPartition(partition_index=9, committed_offset=1)]
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=partitions) for name in ALL],
    )


def offset_fetch(
    ids: Ids,
    groups: Sequence[str] = ("club", "gone"),
    names: Sequence[str] | None = ALL,
    *,
    by_id: bool = False,
) -> OffsetFetchRequest:
    topics = None
    if names is not None:
        topics = [
            OffsetFetchRequestTopics(topic_id=ids[name], partition_indexes=[0])
            if by_id
            else OffsetFetchRequestTopics(name=name, partition_indexes=[0])
            for name in names
        ]
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=name, topics=topics) for name in groups]
    )


def old_offset_fetch(names: Sequence[str] | None = ALL) -> OffsetFetchRequest:
    topics = None
    if names is not None:
        topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1]) for name in names]
    return OffsetFetchRequest(group_id="club", topics=topics)


def create_topics(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names],
        validate_only=True,
    )


def delete_topics(*states: DeleteTopicState) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=list(states), timeout_ms=1_000)


def add_partitions(*names: str) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=0,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in names],
    )


def describe_configs(*resources: tuple[int, str]) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=["retention.ms", "interval.ms"]
            )
            for kind, name in resources
        ]
    )


def alter_configs(*resources: tuple[int, str]) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name="retention.ms", value="1")],
            )
            for kind, name in resources
        ],
        validate_only=True,
    )


def old_alter_configs(*resources: tuple[int, str]) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        resources=[
            OldResource(
                resource_type=kind, resource_name=name, configs=[OldConfig(name="retention.ms", value="1")]
            )
            for kind, name in resources
        ],
        validate_only=True,
    )


EVERYTHING = (
    (TOPIC, "shut"),
    (TOPIC, "gone"),
    (TOPIC, "open"),
    (GROUP, "club"),
    (BROKER, "1"),
    (CLIENT_METRICS, "m"),
    (BROKER_LOGGER, "1"),
)


def subscribe(names: Sequence[str], group: str = "new") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m-1",
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=list(names),
        topic_partitions=[],
    )


def heartbeat_until_assigned(answer: Any) -> ConsumerGroupHeartbeatRequest | None:
    """Kafka matches expressions in the background."""
    if answer.error_code or (answer.assignment is not None and answer.assignment.topic_partitions):
        return None
    return ConsumerGroupHeartbeatRequest(
        group_id="new", member_id="m-1", member_epoch=answer.member_epoch, topic_partitions=[]
    )


def of_group(request: type[Any], **more: Any) -> Callable[[Ids], Any]:
    return lambda _ids: request(group_id="club", **more)


def fixed(request: Any) -> Callable[[Ids], Any]:
    return lambda _ids: request


JOIN = of_group(
    JoinGroupRequest,
    session_timeout_ms=10_000,
    protocol_type="consumer",
    protocols=[JoinGroupRequestProtocol(name="range")],
)
QUOTA = RequestEntryData(
    entity=[EntityData(entity_type="user", entity_name="a")],
    ops=[OpData(key="producer_byte_rate", value=1e6)],
)
