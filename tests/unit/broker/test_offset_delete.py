"""The OffsetDelete handler: offsets of subscribed topics cannot be deleted."""

from __future__ import annotations

import pytest

from odradek.group.committed_offset import CommittedOffset
from odradek.wire.codec import encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.wire.messages.join_group import JoinGroupRequestProtocol
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from support.group_client import GroupClient

READS_T = b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)


@pytest.fixture
def client() -> GroupClient:
    """A client of a broker with topics ``t`` and ``u``; group ``g`` has committed both."""
    client = GroupClient()
    for name in ("t", "u"):
        client.broker.topics.create(name, 1, {})
        topic_id = client.broker.topics.by_name[name].id
        client.broker.groups.commit("g", {(topic_id, 0): CommittedOffset(offset=5)})
    return client


def delete(client: GroupClient, *names: str, group_id: str = "g", partition: int = 0) -> OffsetDeleteResponse:
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
        )
        for name in names
    ]
    answers: list[OffsetDeleteResponse] = client.post(OffsetDeleteRequest(group_id=group_id, topics=topics))
    return answers[0]


def codes(answer: OffsetDeleteResponse) -> list[int]:
    return [topic.partitions[0].error_code for topic in answer.topics]


def left(client: GroupClient) -> int:
    return len(client.broker.groups.offsets.of_group("g"))


@pytest.mark.parametrize(
    ("group_id", "code"), [("", ErrorCode.INVALID_GROUP_ID), ("other", ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_an_unknown_group_is_refused(client: GroupClient, group_id: str, code: ErrorCode) -> None:
    assert delete(client, "t", group_id=group_id).error_code == code


def test_offsets_of_an_empty_group_are_deleted(client: GroupClient) -> None:
    answer = delete(client, "t", "u")

    assert codes(answer) == [0, 0]
    assert left(client) == 0


def test_an_unknown_partition_is_refused(client: GroupClient) -> None:
    assert codes(delete(client, "other")) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert codes(delete(client, "t", partition=1)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_subscribed_topic_is_refused(client: GroupClient) -> None:
    client.stable_group(protocols=[JoinGroupRequestProtocol(name="range", metadata=READS_T)])

    answer = delete(client, "t", "u")

    assert codes(answer) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0]
    assert left(client) == 1


def test_members_with_an_unreadable_subscription_may_read_any_topic(client: GroupClient) -> None:
    client.stable_group()

    assert codes(delete(client, "t", "u")) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * 2


def test_members_of_another_protocol_type_keep_all_offsets(client: GroupClient) -> None:
    client.post(client.joining(group_instance_id="one", protocol_type="connect"))

    assert delete(client, "t").error_code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_can_be_deleted_once_the_group_is_empty(client: GroupClient) -> None:
    (member,) = client.stable_group(protocols=[JoinGroupRequestProtocol(name="range", metadata=READS_T)])
    client.post(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member.member_id)]))

    assert codes(delete(client, "t", "u")) == [0, 0]


def test_a_partition_that_is_named_twice_is_deleted_once(client: GroupClient) -> None:
    twice = [OffsetDeleteRequestPartition(partition_index=0)] * 2
    request = OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name="t", partitions=twice)])

    (answer,) = client.post(request)

    assert [each.error_code for each in answer.topics[0].partitions] == [ErrorCode.NONE] * 2
    assert left(client) == 1
