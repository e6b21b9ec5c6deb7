"""Every version of every group API gives a correct answer to a plain request, as bytes."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.dispatch.routes import Routes
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.describe_groups import DescribeGroupsRequest
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.join_group import JoinGroupRequest
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from support.group_client import DELAY_MS, GroupClient

TOPIC = "greetings"
ROUTES = Routes()


def served(request: type[Any]) -> range:
    """The versions that are parsed."""
    versions = ROUTES[request.API_KEY].versions
    return range(versions.first, versions.last + 1)


@pytest.fixture
def client() -> GroupClient:
    """A client of a broker with one topic of one partition."""
    client = GroupClient()
    client.broker.topics.create(TOPIC, 1, {})
    return client


def topic_id(client: GroupClient) -> bytes:
    topic = client.broker.topics.named(TOPIC)
    assert topic is not None
    return topic.id


def committing(client: GroupClient, offset: int = 5) -> OffsetCommitRequest:
    """Commit an offset without being a member of the group."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_leader_epoch=0, committed_metadata="here"
    )
    topic = OffsetCommitRequestTopic(name=TOPIC, topic_id=topic_id(client), partitions=[partition])
    return OffsetCommitRequest(group_id="g", topics=[topic])


@pytest.mark.parametrize("version", served(JoinGroupRequest))
def test_join_group_starts_a_generation(client: GroupClient, version: int) -> None:
    member_id = client.member_id() if version >= 4 else ""

    answers = client.post(client.joining(member_id=member_id), version)
    client.clock.advance(DELAY_MS)

    (joined,) = answers
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert joined.leader == joined.member_id == joined.members[0].member_id
    assert joined.members[0].metadata == b"m"
    assert joined.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", served(SyncGroupRequest))
def test_sync_group_returns_the_leaders_assignment(client: GroupClient, version: int) -> None:
    answers = client.post(client.joining(member_id=client.member_id()))
    client.clock.advance(DELAY_MS)
    member_id = answers[0].member_id
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")],
    )

    (synced,) = client.post(request, version)

    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"all")
    assert synced.protocol_name == ("range" if version >= 5 else None)


@pytest.mark.parametrize("version", served(HeartbeatRequest))
def test_heartbeat_of_a_member_is_accepted(client: GroupClient, version: int) -> None:
    (member,) = client.stable_group()
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member.member_id)

    (answer,) = client.post(request, version)

    assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", served(LeaveGroupRequest))
def test_leave_group_empties_the_group(client: GroupClient, version: int) -> None:
    (member,) = client.stable_group()
    request = LeaveGroupRequest(group_id="g")
    if version >= 3:
        request.members = [MemberIdentity(member_id=member.member_id)]
    else:
        request.member_id = member.member_id

    (answer,) = client.post(request, version)

    assert answer.error_code == ErrorCode.NONE
    assert [one.error_code for one in answer.members] == ([0] if version >= 3 else [])
    assert client.broker.groups.group("g").state_name == "Empty"


@pytest.mark.parametrize("version", served(DescribeGroupsRequest))
def test_describe_groups_shows_a_member(client: GroupClient, version: int) -> None:
    (member,) = client.stable_group()

    (answer,) = client.post(DescribeGroupsRequest(groups=["g"]), version)

    (group,) = answer.groups
    assert (group.error_code, group.group_state, group.protocol_data) == (0, "Stable", "range")
    (described,) = group.members
    assert (described.member_id, described.client_id, described.client_host) == (
        member.member_id,
        "test",
        "/127.0.0.1",
    )
    assert (described.member_metadata, described.member_assignment) == (b"m", b"0")


@pytest.mark.parametrize("version", served(ListGroupsRequest))
def test_list_groups_names_the_group(client: GroupClient, version: int) -> None:
    client.stable_group()

    (answer,) = client.post(ListGroupsRequest(), version)

    (group,) = answer.groups
    assert (group.group_id, group.protocol_type) == ("g", "consumer")
    assert group.group_state == ("Stable" if version >= 4 else "")
    assert group.group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize("version", served(DeleteGroupsRequest))
def test_delete_groups_removes_the_group(client: GroupClient, version: int) -> None:
    client.post(committing(client))

    (answer,) = client.post(DeleteGroupsRequest(groups_names=["g"]), version)

    assert [result.error_code for result in answer.results] == [ErrorCode.NONE]
    assert not client.broker.groups.groups


@pytest.mark.parametrize("version", served(OffsetCommitRequest))
def test_offset_commit_stores(client: GroupClient, version: int) -> None:
    request = committing(client, offset=7)

    (answer,) = client.post(request, version)

    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    stored = client.broker.groups.offsets.offset("g", (topic_id(client), 0))
    assert stored is not None
    assert (stored.offset, stored.metadata) == (7, "here")
    assert stored.leader_epoch == (0 if version >= 6 else -1)


@pytest.mark.parametrize("version", served(OffsetFetchRequest))
def test_offset_fetch_returns_committed_offsets(client: GroupClient, version: int) -> None:
    client.post(committing(client, offset=7))
    old = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    new = [OffsetFetchRequestTopics(name=TOPIC, topic_id=topic_id(client), partition_indexes=[0])]
    request = OffsetFetchRequest(
        group_id="g", topics=old, groups=[OffsetFetchRequestGroup(group_id="g", topics=new)]
    )

    (answer,) = client.post(request, version)

    topic = answer.topics[0] if version < 8 else answer.groups[0].topics[0]
    (partition,) = topic.partitions
    assert (partition.error_code, partition.committed_offset, partition.metadata) == (0, 7, "here")
    assert partition.committed_leader_epoch == (0 if version >= 5 else -1)


@pytest.mark.parametrize("version", served(OffsetDeleteRequest))
def test_offset_delete_forgets(client: GroupClient, version: int) -> None:
    client.post(committing(client))
    topic = OffsetDeleteRequestTopic(name=TOPIC, partitions=[OffsetDeleteRequestPartition(partition_index=0)])

    (answer,) = client.post(OffsetDeleteRequest(group_id="g", topics=[topic]), version)

    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert client.broker.groups.offsets.offset("g", (topic_id(client), 0)) is None
