"""JoinGroup v0-v9: the classic protocol.

Behavior:
    * The answer waits until all members have joined or the rebalance timeout is over; for the first members
      of a group, until ``group.initial.rebalance.delay.ms`` has passed.
    * A client that disconnects meanwhile stays a member until its session ends, as in Kafka: it may reconnect
      and retry.
    * If two static members have the same instance id, the later one wins and the earlier one is
      FENCED_INSTANCE_ID.
    * A consumer may join a group of the consumer protocol (KIP-848): it is answered at once, has no leader,
      and its generation is its member epoch. Its protocol must be one that all classic members speak.
Versions:
    * v0: the session timeout is also the rebalance timeout. v1: rebalance timeout. v4: MEMBER_ID_REQUIRED.
      v5: static members. v9: SkipAssignment for a static leader that returns.
    * A refusal has no protocol name: null from v7 on, empty before.
Ignored fields:
    * Reason changes nothing; it is told as an incident of the client.
Differs from Kafka:
    * More than 1 MiB of protocol metadata from one member is INVALID_REQUEST; Kafka fails later, when it
      stores the group.
    * A new group beyond ``groups.max``, a new member beyond ``group.members.max`` and protocols beyond
      ``group.members.max.bytes`` are POLICY_VIOLATION.
    * There are at most 10000 pending member ids in a group; one more is GROUP_MAX_SIZE_REACHED.
    * If a waiting member sends a second JoinGroup, the first is answered with REBALANCE_IN_PROGRESS; Kafka
      never answers it.
"""

from __future__ import annotations

from functools import partial

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.group import classic_protocol
from odradek.group.classic_join import Joiner
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

NULL_NAME_VERSION = 7


def refuse(request: JoinGroupRequest, code: ErrorCode, _message: str | None) -> JoinGroupResponse:
    """The error, with the client's own member id."""
    return JoinGroupResponse(error_code=code, member_id=request.member_id)


@answers(JoinGroupRequest, refusal=refuse)
def join_group(
    request: JoinGroupRequest, context: RequestContext, broker: Broker
) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
    joiner = Joiner(context.client_id or "", f"/{context.connection.client_address}", context.api_version)
    try:
        broker.authorization.require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
        broker.check_new_group(request.group_id)
        broker.names.check("group instance id", request.group_instance_id)
        broker.names.check("protocol type", request.protocol_type)
        answer = classic_protocol.join(broker.groups, request, joiner)
    except ApiError as error:
        answer = refuse(request, error.code, error.message)
    if not isinstance(answer, Deferred):
        return without_name(answer, context.api_version)
    if not answer.done:
        unavailable = refuse(request, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
        answer.hurry = partial(answer.complete, unavailable)
    return answer.then(lambda response: without_name(response, context.api_version))


def without_name(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """Set the protocol name of a refusal to null in versions that have null."""
    if response.error_code and version >= NULL_NAME_VERSION:
        response.protocol_name = None
    return response
