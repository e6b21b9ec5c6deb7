"""The classic protocol over all groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Refusals are raised. An answer that has to wait for other members is a `Deferred`. The metadata and
assignments that members exchange are opaque here.
"""

from __future__ import annotations

from odradek.group import classic_leave, classic_sync, mixed_group
from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_join import ClassicJoin, Joiner
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.mixed_group import MixedJoin
from odradek.group.share_group import ShareGroup
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberResponse
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def join(
    coordinator: GroupCoordinator, request: JoinGroupRequest, joiner: Joiner
) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
    """Enter a group, or take part in its rebalance. An unknown group is created.

    Raises:
        ApiError: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, or one of `check_room`, `group_to_join` and
            `ClassicJoin.run`.
    """
    check_group_id(request.group_id)
    coordinator.check_not_owned(request.group_id)
    config = coordinator.config
    if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
        raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
    check_room(coordinator, request)
    mixed = mixed_of(coordinator, request.group_id)
    if mixed is not None:
        with coordinator.outbox:
            return MixedJoin(request, joiner, coordinator.random_uuid(), mixed).answer()
    group = group_to_join(coordinator, request)
    with coordinator.outbox:
        try:
            return ClassicJoin(request, joiner, coordinator.random_uuid(), coordinator.rebalance, group).run()
        finally:
            forget_if_unused(coordinator, group)


def check_room(coordinator: GroupCoordinator, request: JoinGroupRequest) -> None:
    """Check that all groups together have room for the member.

    Raises:
        ApiError: POLICY_VIOLATION.
    """
    group = coordinator.groups.get(request.group_id)
    sizes, place = None, None
    if group is not None:
        sizes, place = group.sizes, group.static_members.get(request.group_instance_id or "")
    size = sum(len(protocol.name) + len(protocol.metadata) for protocol in request.protocols)
    coordinator.totals.check(sizes, (request.member_id, place), size)


def group_to_join(coordinator: GroupCoordinator, request: JoinGroupRequest) -> ClassicGroup:
    """The group to join. An empty one of another protocol becomes a classic one.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID: a member of a group that does not exist; POLICY_VIOLATION;
            INCONSISTENT_GROUP_PROTOCOL: a streams group with members.
    """
    known = coordinator.groups.get(request.group_id)
    if isinstance(known, ClassicGroup):
        return known
    if isinstance(known, ShareGroup):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.member_id and known is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if known is None:
        coordinator.groups_limit.check()
    elif not known.is_empty:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    group = ClassicGroup(request.group_id, generation=0 if known is None else known.generation)
    if known is None:
        coordinator.replace(group)
    else:
        coordinator.put(group)
    return group


def mixed_of(coordinator: GroupCoordinator, group_id: str) -> ConsumerGroup | None:
    """A group of the consumer protocol that has members, perhaps of both protocols; None if it is not
    one.
    """
    group = coordinator.groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) and not group.is_empty else None


def forget_if_unused(coordinator: GroupCoordinator, group: ClassicGroup) -> None:
    """Remove a group that was only made for a refused join or an unused member id."""
    if group.is_unused:
        coordinator.classic_group_changed(group)


def sync(
    coordinator: GroupCoordinator, request: SyncGroupRequest
) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    """Fetch the member's assignment. The leader brings the assignments of all members.

    Raises:
        ApiError: See `classic_sync.sync`, and INVALID_GROUP_ID.
    """
    mixed = mixed_of(coordinator, request.group_id)
    if mixed is not None:
        with coordinator.outbox:
            return mixed_group.sync(mixed, request)
    coordinator.totals.bytes_limit.check(sum(len(each.assignment) for each in request.assignments))
    group = group_of_member(coordinator, request.group_id)
    with coordinator.outbox:
        return classic_sync.sync(coordinator.rebalance, group, request)


def heartbeat(coordinator: GroupCoordinator, request: HeartbeatRequest) -> None:
    """A member is alive.

    Raises:
        ApiError: See `classic_sync.heartbeat`, and INVALID_GROUP_ID.
    """
    mixed = mixed_of(coordinator, request.group_id)
    if mixed is not None:
        mixed_group.heartbeat(mixed, request)
        return
    classic_sync.heartbeat(coordinator.rebalance, group_of_member(coordinator, request.group_id), request)


def leave(coordinator: GroupCoordinator, request: LeaveGroupRequest) -> list[MemberResponse]:
    """Remove members from a group. Those of an unknown group are unknown, too.

    Raises:
        ApiError: INVALID_GROUP_ID.
    """
    check_group_id(request.group_id)
    mixed = mixed_of(coordinator, request.group_id)
    if mixed is not None:
        with coordinator.outbox:
            return mixed_group.leave(mixed, request)
    group = coordinator.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        return [classic_leave.answer(identity, ErrorCode.UNKNOWN_MEMBER_ID) for identity in request.members]
    with coordinator.outbox:
        answers = classic_leave.leave(coordinator.rebalance, group, request)
        forget_if_unused(coordinator, group)
    return answers


def group_of_member(coordinator: GroupCoordinator, group_id: str) -> ClassicGroup:
    """The group that a request names as its own."""
    check_group_id(group_id)
    group = coordinator.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return group


def check_group_id(group_id: str) -> None:
    """Refuse an empty group id: only committed offsets may have one.

    Raises:
        ApiError: INVALID_GROUP_ID.
    """
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
