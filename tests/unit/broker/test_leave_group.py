"""The LeaveGroup handler: the place of the error code."""

from __future__ import annotations

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from support.group_client import GroupClient


@pytest.mark.parametrize("version", [0, 2])
def test_before_v3_the_members_error_is_at_the_top(version: int) -> None:
    client = GroupClient()
    client.stable_group()

    (answer,) = client.post(LeaveGroupRequest(group_id="g", member_id="stranger"), version)

    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_from_v3_on_every_member_has_its_own_error() -> None:
    client = GroupClient()
    (member,) = client.stable_group()
    members = [MemberIdentity(member_id=name) for name in ("stranger", member.member_id)]

    (answer,) = client.post(LeaveGroupRequest(group_id="g", members=members))

    assert answer.error_code == ErrorCode.NONE
    assert [(one.member_id, one.error_code) for one in answer.members] == [
        ("stranger", ErrorCode.UNKNOWN_MEMBER_ID),
        (member.member_id, ErrorCode.NONE),
    ]


@pytest.mark.parametrize("version", range(6))
def test_the_members_of_an_unknown_group_are_unknown(version: int) -> None:
    client = GroupClient()
    members = [MemberIdentity(member_id="m"), MemberIdentity(group_instance_id="i")]

    (answer,) = client.post(LeaveGroupRequest(group_id="g", member_id="m", members=members), version)

    several = version >= 3
    assert answer.error_code == (ErrorCode.NONE if several else ErrorCode.UNKNOWN_MEMBER_ID)
    assert [one.error_code for one in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2 * several
