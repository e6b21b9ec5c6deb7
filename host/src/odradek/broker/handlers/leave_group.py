"""LeaveGroup v0-v5: the classic protocol.

Behavior:
    * However many members leave, one rebalance follows.
    * An operator can remove a static member by its instance id alone.
Versions:
    * v0-v2: one member, its error is at the top. v3: several, each with its own error.
Ignored fields:
    * Reason changes nothing; it is told as an incident of the client.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.group import classic_protocol
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

SEVERAL_MEMBERS_VERSION = 3


AT_A_TIME = 50
"""Members that are removed in one step."""


@answers(LeaveGroupRequest, each="members")
def leave_group(
    request: LeaveGroupRequest, context: RequestContext, broker: Broker
) -> Generator[MemberResponse, None, LeaveGroupResponse]:
    broker.authorization.require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if context.api_version >= SEVERAL_MEMBERS_VERSION:
        yield from removed(request, broker)
        return LeaveGroupResponse()
    request.members = [MemberIdentity(member_id=request.member_id)]
    (only,) = classic_protocol.leave(broker.groups, request)
    return LeaveGroupResponse(error_code=only.error_code)


def removed(request: LeaveGroupRequest, broker: Broker) -> Iterator[MemberResponse]:
    """Remove the members, some at a time; yield the result of each.

    Raises:
        ApiError: There is no such group; no member has been removed.
    """
    for start in range(0, len(request.members) or 1, AT_A_TIME):
        some = request.members[start : start + AT_A_TIME]
        try:
            yield from classic_protocol.leave(
                broker.groups, LeaveGroupRequest(group_id=request.group_id, members=some)
            )
        except ApiError as error:
            if start == 0:
                raise
            # The group ended with the members before.
            yield from (
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=error.code,
                )
                for each in some
            )
