"""SyncGroup v0-v5: the classic protocol.

Behavior:
    * The answer waits for the leader's assignment. If a rebalance begins meanwhile, it is
      REBALANCE_IN_PROGRESS.
    * A member that joined and does not send SyncGroup within the rebalance timeout is removed.
Versions:
    * v3: static members. v5: protocol type and name are compared with the group's. A request without them is
      INCONSISTENT_GROUP_PROTOCOL, whatever else is wrong with it.
Differs from Kafka:
    * Assignments of more than 64 MiB together are INVALID_REQUEST; beyond ``group.members.max.bytes`` they
      are POLICY_VIOLATION.
    * If a waiting member sends a second SyncGroup, the first is answered with REBALANCE_IN_PROGRESS; Kafka
      never answers it.
"""

from __future__ import annotations

from functools import partial

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.group import classic_protocol
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_VERSION = 5


@answers(SyncGroupRequest)
def sync_group(
    request: SyncGroupRequest, context: RequestContext, broker: Broker
) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    if context.api_version >= PROTOCOL_VERSION and None in (request.protocol_type, request.protocol_name):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    broker.authorization.require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    answer = classic_protocol.sync(broker.groups, request)
    if isinstance(answer, Deferred) and not answer.done:
        unavailable = SyncGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        answer.hurry = partial(answer.complete, unavailable)
    return answer
