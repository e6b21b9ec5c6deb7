"""StreamsGroupDescribe, and streams groups in the other requests about groups (KIP-1071)."""

from __future__ import annotations

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.describe_groups import DescribeGroupsRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.messages.streams_group_describe import DescribedStreamsGroup, StreamsGroupDescribeRequest
from odradek.wire.messages.streams_group_heartbeat import UserEndpoint
from odradek.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from support.broker import BrokerClient
from support.streams_groups import GROUP, tasks
from support.streams_requests import beat, client, join, later, stateful


@pytest.fixture
def asked() -> BrokerClient:
    """A broker with a streams group of one member, which has two tasks and a changelog."""
    made = client()
    made.send(join(stateful(), user_endpoint=UserEndpoint(host="h", port=7)), 1)
    later(made)
    made.send(beat(2), 1)
    return made


def described(
    asked: BrokerClient, *names: str, version: int = 1, **more: bool
) -> list[DescribedStreamsGroup]:
    groups: list[DescribedStreamsGroup] = asked.send(
        StreamsGroupDescribeRequest(group_ids=list(names), **more), version
    ).groups
    return groups


def test_a_group_is_described_with_its_topology_and_members(asked: BrokerClient) -> None:
    (group,) = described(asked, GROUP)

    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "sticky")
    assert (group.group_epoch, group.assignment_epoch) == (3, 3)
    assert group.topology is not None
    assert group.topology.subtopologies is not None
    (subtopology,) = group.topology.subtopologies
    assert (subtopology.source_topics, subtopology.state_changelog_topics[0].partitions) == (["words"], 2)
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.process_id) == ("m1", 3, "p")
    assert (member.client_host, member.user_endpoint) == ("/127.0.0.1", UserEndpoint(host="h", port=7))
    assert member.assignment.active_tasks == member.target_assignment.active_tasks == tasks(0, 1)


def test_a_description_of_the_topology_is_told_to_be_kept_by_nobody(asked: BrokerClient) -> None:
    (plain,) = described(asked, GROUP)
    group, unknown = described(asked, GROUP, "unknown", include_topology_description=True)

    assert (plain.topology_description_status, group.topology_description_status) == (0, 1)
    assert unknown.topology_description_status == 0
    answer = asked.send(StreamsGroupTopologyDescriptionUpdateRequest(group_id=GROUP), 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("name", "code"), [("nobody", ErrorCode.GROUP_ID_NOT_FOUND), ("", ErrorCode.INVALID_GROUP_ID)]
)
def test_an_unknown_group_is_refused(asked: BrokerClient, name: str, code: ErrorCode) -> None:
    assert [group.error_code for group in described(asked, name, name)] == [code]


def test_with_the_feature_off_every_group_is_refused() -> None:
    groups = described(client(on=False), "a", "b")

    assert {group.error_code for group in groups} == {ErrorCode.UNSUPPORTED_VERSION}


def test_it_is_listed_by_its_type(asked: BrokerClient) -> None:
    (group,) = asked.send(ListGroupsRequest(types_filter=["Streams"]), 5).groups

    assert (group.group_id, group.protocol_type, group.group_type) == (GROUP, "streams", "streams")


def test_a_group_with_members_is_not_deleted(asked: BrokerClient) -> None:
    request = DeleteGroupsRequest(groups_names=[GROUP])

    (kept,) = asked.send(request, 2).results
    asked.send(beat(-1), 1)
    (deleted,) = asked.send(request, 2).results

    assert (kept.error_code, deleted.error_code) == (ErrorCode.NON_EMPTY_GROUP, 0)
    assert "log" in asked.broker.topics.by_name


def test_other_protocols_refuse_it(asked: BrokerClient) -> None:
    consumer = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="c",
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["words"],
        topic_partitions=[],
    )
    classic = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )

    assert asked.send(consumer, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert asked.send(classic, 9).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    (group,) = asked.send(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1).groups
    assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    (group,) = asked.send(DescribeGroupsRequest(groups=[GROUP]), 6).groups
    assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


def test_an_empty_streams_group_is_not_one_of_consumers(asked: BrokerClient) -> None:
    asked.send(beat(-1), 1)
    consumer = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="c",
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["words"],
        topic_partitions=[],
    )

    assert asked.send(consumer, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
