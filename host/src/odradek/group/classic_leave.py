"""LeaveGroup: members leave, or an operator removes them."""

from __future__ import annotations

from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_rebalance import ClassicRebalance
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse


def leave(
    rebalance: ClassicRebalance, group: ClassicGroup, request: LeaveGroupRequest
) -> list[MemberResponse]:
    """Remove members and return a response for each. However many leave, one rebalance follows."""
    answers = [leave_one(rebalance, group, identity) for identity in request.members]
    if not group.is_empty and any(each.error_code == ErrorCode.NONE for each in answers):
        rebalance.rebalance_or_complete_join(group)
    return answers


def leave_one(rebalance: ClassicRebalance, group: ClassicGroup, identity: MemberIdentity) -> MemberResponse:
    """Remove one member, or return the reason against it."""
    if not group.forget_pending(identity.member_id):
        try:
            rebalance.remove(group, group.members[leaving_id(group, identity)])
        except ApiError as error:
            return answer(identity, error.code)
    return answer(identity, ErrorCode.NONE)


def answer(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code
    )


def leaving_id(group: ClassicGroup, identity: MemberIdentity) -> str:
    """The member id to remove. An operator may give only the instance id.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    if not identity.member_id and identity.group_instance_id is not None:
        member_id = group.static_members.get(identity.group_instance_id)
        if member_id is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member_id
    group.check_member(identity.member_id, identity.group_instance_id)
    return identity.member_id
