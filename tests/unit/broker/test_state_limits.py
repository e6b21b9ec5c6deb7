"""The limits of what clients create: each refuses the next one, and lets go of what was deleted."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.group.group_config import GroupConfig
from odradek.settings.state_limit import StateLimit
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from support.broker import BrokerClient, make_broker

OK, REFUSED = ErrorCode.NONE, ErrorCode.POLICY_VIOLATION


def limit(broker: Broker, kind: str) -> StateLimit:
    return next(each for each in broker.state_limits if each.kind == kind)


def of(broker: Broker, kind: str) -> tuple[int, int]:
    """The present number, and how many were refused."""
    found = limit(broker, kind)
    return found.count(), found.refused


# Groups


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


@pytest.mark.parametrize("create", [join_classic, join_consumer, commit])
def test_groups(create: Any) -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=2)))
    client.broker.topics.create("t", 1, {})

    codes = [create(client, group_id) for group_id in ("a", "b", "c", "a")]

    assert codes == [OK, OK, REFUSED, OK]
    assert of(client.broker, "groups") == (2, 1)


def test_a_deleted_group_makes_room() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=1)))
    client.broker.topics.create("t", 1, {})
    commit(client, "a")

    client.send(DeleteGroupsRequest(groups_names=["a"]))

    assert commit(client, "b") == OK


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


def test_configured_groups() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=2)))

    codes = configure_group(client, "a", "b", "c") + configure_group(client, "a", "d")

    assert codes == [OK, OK, REFUSED, OK, REFUSED]
    assert of(client.broker, "configured groups") == (2, 2)


# The log


def test_refusals_are_logged_ever_more_rarely(caplog: pytest.LogCaptureFixture) -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=1)))
    client.broker.topics.create("t", 1, {})
    commit(client, "a")

    with caplog.at_level(logging.WARNING):
        for _ in range(25):
            commit(client, "b")

    assert [row.__dict__["refused"] for row in caplog.records] == [1, 10]
    assert {row.__dict__["setting"] for row in caplog.records} == {"groups.max"}
