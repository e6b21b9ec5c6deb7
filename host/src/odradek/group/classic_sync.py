"""SyncGroup and Heartbeat: the requests of a classic group's members within a generation."""

from __future__ import annotations

from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_rebalance import ClassicRebalance
from odradek.group.classic_state import ClassicState
from odradek.group.group_config import MAX_ASSIGNMENTS_BYTES
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(
    rebalance: ClassicRebalance, group: ClassicGroup, request: SyncGroupRequest
) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    """Return the member's assignment, or park the request until the leader has sent it.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
            REBALANCE_IN_PROGRESS, or INVALID_REQUEST: the assignments are too large.
    """
    check_sync(group, request)
    if group.state is ClassicState.PREPARING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    member = group.members[request.member_id]
    is_leader = group.leader_id == member.member_id
    assignments = {entry.member_id: entry.assignment for entry in request.assignments}
    if is_leader and sum(map(len, assignments.values())) > MAX_ASSIGNMENTS_BYTES:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    rebalance.synced(group, member.member_id)
    if group.state is ClassicState.STABLE:
        return rebalance.assignment(group, member)
    rebalance.outbox.put(member.sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    parked = member.sync = Deferred[SyncGroupResponse]()
    if is_leader:
        rebalance.assign(group, assignments)
    return parked


def check_sync(group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Check member, generation and protocol, in this order."""
    check_generation(group, request.member_id, request.group_instance_id, request.generation_id)
    for received, known in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    ):
        if received is not None and known is not None and received != known:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def check_generation(
    group: ClassicGroup, member_id: str, group_instance_id: str | None, generation_id: int
) -> None:
    """Check that a request comes from a member of the current generation."""
    group.check_member(member_id, group_instance_id)
    if generation_id != group.generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)


def heartbeat(rebalance: ClassicRebalance, group: ClassicGroup, request: HeartbeatRequest) -> None:
    """Keep a member alive.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION; or REBALANCE_IN_PROGRESS: the
            member stays alive but must join again.
    """
    check_generation(group, request.member_id, request.group_instance_id, request.generation_id)
    rebalance.arm_session(group, group.members[request.member_id])
    if group.state is ClassicState.PREPARING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
