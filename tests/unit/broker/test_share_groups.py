"""Share groups through the dispatcher: heartbeats, descriptions, and requests for groups of another type."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.features import SHARE_VERSION
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.testing.clock import MockClock
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.describe_groups import DescribeGroupsRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_delete import OffsetDeleteRequest
from odradek.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.wire.messages.share_group_describe import DescribedShareGroup, ShareGroupDescribeRequest
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from support.broker import BrokerClient, make_broker

ALL_OPERATIONS = 3400
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS."""


@pytest.fixture
def client() -> BrokerClient:
    client = BrokerClient()
    client.broker.features.finalize(SHARE_VERSION, 2)
    client.broker.topics.create("t", 2, {})
    return client


def beat(client: BrokerClient, epoch: int = 0, **fields: Any) -> Any:
    """The member ``m`` of group ``g`` joins, or sends a heartbeat."""
    request = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
    if not epoch:
        request.subscribed_topic_names = ["t"]
    for name, value in fields.items():
        setattr(request, name, value)
    return client.send(request)


def describe(client: BrokerClient, group_id: str = "g", *, operations: bool = False) -> DescribedShareGroup:
    request = ShareGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=operations)
    (group,) = client.send(request).groups
    assert isinstance(group, DescribedShareGroup)
    return group


def pass_time(client: BrokerClient, elapsed_ms: int) -> None:
    assert isinstance(client.broker.clock, MockClock)
    client.broker.clock.advance(elapsed_ms)


def test_a_group_is_described_and_listed(client: BrokerClient) -> None:
    beat(client)
    pass_time(client, 1_000)
    beat(client, 2)

    group = describe(client, operations=True)
    (member,) = group.members
    (topic,) = member.assignment.topic_partitions

    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "simple")
    assert (group.group_epoch, group.assignment_epoch, group.authorized_operations) == (3, 3, ALL_OPERATIONS)
    assert (member.member_id, member.member_epoch, member.client_id) == ("m", 3, "test")
    assert member.client_host.startswith("/")
    assert member.subscribed_topic_names == ["t"]
    assert (topic.topic_id, topic.topic_name) == (client.broker.topics.by_name["t"].id, "t")
    assert topic.partitions == [0, 1]
    assert describe(client).authorized_operations == -(2**31)
    (listed,) = client.send(ListGroupsRequest(types_filter=["Share"])).groups
    assert (listed.group_id, listed.protocol_type) == ("g", "share")
    assert (listed.group_state, listed.group_type) == ("Stable", "share")
    assert client.send(ListGroupsRequest(types_filter=["consumer"])).groups == []
    assert client.send(ListGroupsRequest(states_filter=["Empty"])).groups == []


@pytest.mark.parametrize("member_id", ["", "x" * 37])
def test_a_member_id_is_checked_before_the_group(client: BrokerClient, member_id: str) -> None:
    assert beat(client, 5, member_id=member_id, group_id="").error_code == ErrorCode.INVALID_REQUEST


def test_a_member_id_of_36_characters_is_taken(client: BrokerClient) -> None:
    assert beat(client, member_id="x" * 36).error_code == 0


def test_an_unknown_group_is_not_described(client: BrokerClient) -> None:
    unknown, nameless = describe(client, "unknown", operations=True), describe(client, "")

    assert (unknown.error_code, unknown.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "")
    assert unknown.authorized_operations == -(2**31)
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def test_without_the_feature_groups_are_listed_and_nothing_else(client: BrokerClient) -> None:
    beat(client)
    client.broker.features.finalize(SHARE_VERSION, 0)

    assert beat(client, 2).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert describe(client).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [group.group_id for group in client.send(ListGroupsRequest()).groups] == ["g"]
    client.broker.features.finalize(SHARE_VERSION, 1)
    assert beat(client, 2).error_code == 0


def test_a_group_is_deleted_once_it_is_empty_and_keeps_its_configuration(client: BrokerClient) -> None:
    client.broker.groups.configure("g", {"share.heartbeat.interval.ms": "9000"})
    assert beat(client).heartbeat_interval_ms == 9_000

    def deleted() -> int:
        (result,) = client.send(DeleteGroupsRequest(groups_names=["g"])).results
        return int(result.error_code)

    assert deleted() == ErrorCode.NON_EMPTY_GROUP
    beat(client, -1)
    assert [deleted(), deleted()] == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    again = beat(client)
    assert (again.member_epoch, again.heartbeat_interval_ms) == (2, 9_000)


def join_classic(client: BrokerClient) -> int:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return int(client.send(request, 3).error_code)


def beat_consumer(client: BrokerClient) -> int:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="c",
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    return int(client.send(request).error_code)


def commit(client: BrokerClient) -> int:
    topic = OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition()])
    answer = client.send(OffsetCommitRequest(group_id="g", topics=[topic]), 9)
    return int(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("is_empty", [True, False])
def test_requests_of_other_groups_are_refused_as_by_kafka(client: BrokerClient, is_empty: bool) -> None:
    beat(client)
    if is_empty:
        beat(client, -1)

    (as_consumer,) = client.send(ConsumerGroupDescribeRequest(group_ids=["g"])).groups
    (as_classic,) = client.send(DescribeGroupsRequest(groups=["g"]), 6).groups
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    (fetched,) = client.send(fetch, 9).groups

    assert join_classic(client) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert beat_consumer(client) == ErrorCode.GROUP_ID_NOT_FOUND
    assert commit(client) == ErrorCode.GROUP_ID_NOT_FOUND
    assert client.send(OffsetDeleteRequest(group_id="g")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (as_consumer.error_code, as_consumer.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group g is not a consumer group.",
    )
    assert (as_classic.error_code, as_classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert (fetched.error_code, fetched.topics) == (0, [])
    assert beat(client).error_code == 0


def test_a_group_of_another_type_is_no_share_group(client: BrokerClient) -> None:
    assert beat_consumer(client) == 0

    assert beat(client).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert describe(client).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_and_members_survive_a_restart() -> None:
    offsets = SqliteOffsetStore(":memory:")
    client = BrokerClient(make_broker(offsets=offsets))
    client.broker.features.finalize(SHARE_VERSION, 2)
    client.broker.topics.create("t", 2, {})
    beat(client)

    again = BrokerClient(make_broker(offsets=offsets))
    again.broker.features.finalize(SHARE_VERSION, 2)

    assert beat(again, 2).error_code == 0
    assert [member.member_id for member in describe(again).members] == ["m"]
