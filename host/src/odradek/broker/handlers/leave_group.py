"""LeaveGroup v0-v5: the classic protocol.

Behavior:
    * However many members leave, one rebalance follows.
    * An operator can remove a static member by its instance id alone.
Versions:
    * v0-v2: one member, its error is at the top. v3: several, each with its own error.
Ignored fields:
    * Reason.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

SEVERAL_MEMBERS_VERSION = 3


@answers(LeaveGroupRequest, LeaveGroupResponse)
def leave_group(request: LeaveGroupRequest, context: RequestContext, broker: Broker) -> LeaveGroupResponse:
    if context.api_version >= SEVERAL_MEMBERS_VERSION:
        return LeaveGroupResponse(members=broker.groups.classic.leave(request))
    request.members = [MemberIdentity(member_id=request.member_id)]
    (only,) = broker.groups.classic.leave(request)
    return LeaveGroupResponse(error_code=only.error_code)
