"""Requests that create state, each with its error code, and the limits of a broker."""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.settings.state_limit import StateLimit
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.error_code import ErrorCode
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
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from support.broker import BrokerClient

OK, REFUSED = ErrorCode.NONE, ErrorCode.POLICY_VIOLATION


def limit(broker: Broker, kind: str) -> StateLimit:
    return next(each for each in broker.state_limits if each.kind == kind)


def of(broker: Broker, kind: str) -> tuple[int, int]:
    """The present number, and how many were refused."""
    found = limit(broker, kind)
    return found.count(), found.refusals.number


def create_topics(client: BrokerClient, **partitions: int) -> list[int]:
    wanted = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=-1)
        for name, count in partitions.items()
    ]
    answer = client.send(CreateTopicsRequest(topics=wanted, timeout_ms=1_000))
    return [row.error_code for row in answer.topics]


def join_classic(client: BrokerClient, group_id: str) -> int:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    code: int = client.send(request).error_code
    return OK if code == ErrorCode.MEMBER_ID_REQUIRED else code


def join_consumer(client: BrokerClient, group_id: str) -> int:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id="m",
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    code: int = client.send(request).error_code
    return code


def commit(client: BrokerClient, group_id: str, *partitions: int, metadata: str = "") -> int:
    offsets = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=metadata)
        for index in partitions or [0]
    ]
    topic = OffsetCommitRequestTopic(name="t", partitions=offsets)
    (answer,) = client.send(OffsetCommitRequest(group_id=group_id, topics=[topic]), 9).topics
    codes = {partition.error_code for partition in answer.partitions}
    assert len(codes) == 1
    code: int = codes.pop()
    return code


def configure_group(client: BrokerClient, *groups: str) -> list[int]:
    config = AlterableConfig(
        name="consumer.session.timeout.ms", config_operation=ConfigOperation.SET, value="50000"
    )
    resources = [
        AlterConfigsResource(resource_type=ResourceType.GROUP, resource_name=name, configs=[config])
        for name in groups
    ]
    answer = client.send(IncrementalAlterConfigsRequest(resources=resources))
    return [row.error_code for row in answer.responses]


def init(client: BrokerClient, transactional_id: str) -> InitProducerIdResponse:
    answer = client.send(
        InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), 5
    )
    assert isinstance(answer, InitProducerIdResponse)
    return answer


def set_password(client: BrokerClient, *users: str) -> list[int]:
    changes = [
        ScramCredentialUpsertion(
            name=user, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32
        )
        for user in users
    ]
    answer = client.send(AlterUserScramCredentialsRequest(upsertions=changes))
    return [row.error_code for row in answer.results]


def set_quota(client: BrokerClient, *users: str, validate_only: bool = False) -> list[int]:
    entries = [
        RequestEntryData(
            entity=[EntityData(entity_type="user", entity_name=user)],
            ops=[OpData(key="producer_byte_rate", value=1.0)],
        )
        for user in users
    ]
    answer = client.send(AlterClientQuotasRequest(entries=entries, validate_only=validate_only))
    return [row.error_code for row in answer.entries]
