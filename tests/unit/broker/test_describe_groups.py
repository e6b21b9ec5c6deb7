"""DescribeGroups: states, members, groups of the other protocol."""

from __future__ import annotations

import pytest

from odradek.broker.authorized_operations import GROUP_OPERATIONS
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_groups import DescribeGroupsRequest
from support.group_client import DELAY_MS, GroupClient


@pytest.fixture
def client() -> GroupClient:
    return GroupClient()


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_an_unknown_group_is_dead(client: GroupClient, version: int, code: ErrorCode) -> None:
    (answer,) = client.post(DescribeGroupsRequest(groups=["g"]), version)

    (group,) = answer.groups
    assert (group.group_state, group.error_code) == ("Dead", code)
    assert group.error_message == ("Group g not found." if version >= 6 else None)


def test_a_consumer_group_is_not_a_classic_group(client: GroupClient) -> None:
    client.broker.groups.put(client.broker.groups.consumer_group("g", 1))

    (answer,) = client.post(DescribeGroupsRequest(groups=["g"]))

    (group,) = answer.groups
    assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert group.error_message == "Group g is not a classic group."


def test_members_are_shown_without_metadata_during_a_rebalance(client: GroupClient) -> None:
    client.post(client.joining(member_id=client.member_id()))

    (answer,) = client.post(DescribeGroupsRequest(groups=["g"]))

    (group,) = answer.groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "PreparingRebalance",
        "consumer",
        "",
    )
    assert [(member.member_metadata, member.member_assignment) for member in group.members] == [(b"", b"")]


def test_the_state_shows_that_the_leader_assigns(client: GroupClient) -> None:
    client.post(client.joining(member_id=client.member_id()))
    client.clock.advance(DELAY_MS)

    (answer,) = client.post(DescribeGroupsRequest(groups=["g"]))

    assert answer.groups[0].group_state == "CompletingRebalance"


def test_static_members_are_shown_with_their_instance_id(client: GroupClient) -> None:
    client.post(client.joining(group_instance_id="one"))

    (answer,) = client.post(DescribeGroupsRequest(groups=["g"]))

    assert answer.groups[0].members[0].group_instance_id == "one"


@pytest.mark.parametrize(("asked", "operations"), [(True, GROUP_OPERATIONS), (False, -(2**31))])
def test_authorized_operations_are_returned_on_request(
    client: GroupClient, asked: bool, operations: int
) -> None:
    client.stable_group()

    (answer,) = client.post(DescribeGroupsRequest(groups=["g"], include_authorized_operations=asked))

    assert answer.groups[0].authorized_operations == operations


def test_a_repeated_group_is_described_once(client: GroupClient) -> None:
    client.stable_group()

    (answer,) = client.post(DescribeGroupsRequest(groups=["g", "other", "g"]))

    assert [group.group_id for group in answer.groups] == ["g", "other"]
