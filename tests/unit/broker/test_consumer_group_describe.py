from __future__ import annotations

import pytest

from odradek.broker.authorized_operations import GROUP_OPERATIONS, NOT_ASKED_FOR
from odradek.broker.features import GROUP_VERSION
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    DescribedGroup,
    TopicPartitions,
)
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from support.broker import BrokerClient


@pytest.fixture
def client() -> BrokerClient:
    """A broker with one consumer in the group ``readers``."""
    client = BrokerClient(client_id="app")
    client.broker.topics.create("a", 2, {})
    client.send(
        ConsumerGroupHeartbeatRequest(
            group_id="readers",
            member_id="m1",
            instance_id="i1",
            rack_id="r1",
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=["a", "absent"],
            subscribed_topic_regex="a.*",
            topic_partitions=[],
        )
    )
    return client


def described(
    client: BrokerClient, *names: str, version: int = 1, asked: bool = False
) -> list[DescribedGroup]:
    request = ConsumerGroupDescribeRequest(group_ids=list(names), include_authorized_operations=asked)
    groups: list[DescribedGroup] = client.send(request, version).groups
    return groups


def test_a_group_is_described_with_its_epochs(client: BrokerClient) -> None:
    (group,) = described(client, "readers")

    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "uniform")
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    assert group.authorized_operations == NOT_ASKED_FOR


@pytest.mark.parametrize(("version", "member_type"), [(0, -1), (1, 1)])
def test_a_member_is_described_with_its_assignment(
    client: BrokerClient, version: int, member_type: int
) -> None:
    (group,) = described(client, "readers", version=version)

    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m1", "i1", "r1")
    assert (member.client_id, member.client_host) == ("app", "/127.0.0.1")
    assert (member.member_epoch, member.member_type) == (2, member_type)
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["a", "absent"], "a.*")
    topic_id = client.broker.topics.by_name["a"].id
    everything = Assignment(
        topic_partitions=[TopicPartitions(topic_id=topic_id, topic_name="a", partitions=[0, 1])]
    )
    assert member.assignment == member.target_assignment == everything


def test_a_deleted_topic_is_left_out(client: BrokerClient) -> None:
    client.broker.topics.delete(client.broker.topics.by_name["a"])

    (group,) = described(client, "readers")

    assert group.members[0].assignment == Assignment()


def test_an_empty_group_has_no_members(client: BrokerClient) -> None:
    client.send(
        ConsumerGroupHeartbeatRequest(group_id="readers", member_id="m1", member_epoch=-1, instance_id="i1")
    )

    (group,) = described(client, "readers")

    assert (group.group_state, group.members) == ("Empty", [])


def test_authorized_operations_are_returned_on_request(client: BrokerClient) -> None:
    (group,) = described(client, "readers", asked=True)

    assert group.authorized_operations == GROUP_OPERATIONS


def test_each_group_has_its_own_error(client: BrokerClient) -> None:
    client.broker.groups.make_simple_group("classic")

    groups = described(client, "readers", "unknown", "classic", "")

    assert [group.error_code for group in groups] == [
        ErrorCode.NONE,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.INVALID_GROUP_ID,
    ]


def test_a_repeated_group_is_described_once(client: BrokerClient) -> None:
    groups = described(client, "readers", "readers")

    assert len(groups) == 1


def test_without_the_feature_no_group_is_described(client: BrokerClient) -> None:
    client.broker.features.finalize(GROUP_VERSION, 0)

    (group,) = described(client, "readers")

    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
