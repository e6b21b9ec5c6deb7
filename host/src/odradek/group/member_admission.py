"""The member that a heartbeat is from, and whether it may join, stay or leave.

Consumer groups and streams groups have the same rules.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from odradek.group.group_member import JOIN_EPOCH, LEAVE_EPOCH, GroupMember, H
from odradek.group.modern_group import M, ModernGroup
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


class Heartbeat(Protocol):
    """What all heartbeats say."""

    member_id: str
    member_epoch: int
    instance_id: str | None


def admitted(group: ModernGroup[M, H], request: Heartbeat, owned: AbstractSet[H] | None) -> M:
    """The member of a request. A request to join may add a member or bring back a static one.

    Raises:
        ApiError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID or
            UNRELEASED_INSTANCE_ID.
    """
    check_room(group, request.member_id)
    if request.instance_id is None:
        member = group.members.get(request.member_id)
    else:
        member = static_member(group, request, request.instance_id)
    if member is None:
        member = joining(group, request)
    check_epoch(group, member, request.member_epoch, owned)
    return member


def check_room(group: ModernGroup[M, H], member_id: str) -> None:
    """Check that a group has room for this member.

    Raises:
        ApiError: GROUP_MAX_SIZE_REACHED.
    """
    if len(group.members) >= group.max_size and member_id not in group.members:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The {group.group_type} group has reached its maximum capacity of {group.max_size} members.",
        )


def joining(group: ModernGroup[M, H], request: Heartbeat) -> M:
    """Add a member that is new, or new under this instance id."""
    if request.member_epoch != JOIN_EPOCH:
        return group.member(request.member_id)
    member = group.members.get(request.member_id) or group.new_member(request.member_id)
    group.add(member, request.instance_id)
    return member


def static_member(group: ModernGroup[M, H], request: Heartbeat, instance_id: str) -> M | None:
    """The static member of a request, if it exists. It may return under another member id."""
    member = group.static_member(instance_id)
    if request.member_epoch != JOIN_EPOCH:
        return known_static_member(member, request.member_id, instance_id)
    if member is None or member.member_id == request.member_id:
        return member
    if not group.has_left(member):
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {instance_id} cannot join the group because "
            f"the instance id is owned by {member.member_id} member.",
        )
    return group.replace(member, request.member_id)


def known_static_member(member: M | None, member_id: str, instance_id: str) -> M:
    """The static member of a request, which must exist and have this member id.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def check_epoch(
    group: ModernGroup[M, H], member: GroupMember[Any], received: int, owned: AbstractSet[H] | None
) -> None:
    """Check the epoch of a request.

    If a response was lost, the client still sends the previous epoch. This is safe if everything that it owns
    is still assigned to it.

    Raises:
        ApiError: FENCED_MEMBER_EPOCH.
    """
    if received in (JOIN_EPOCH, member.member_epoch):
        return
    missed_an_answer = received == member.previous_member_epoch and received < member.member_epoch
    if missed_an_answer and owned is not None and owned <= member.assigned.keys():
        return
    comparison = "greater" if received > member.member_epoch else "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {group.group_type} group member has a {comparison} member epoch ({received}) than the one "
        f"known by the group coordinator ({member.member_epoch}). The member must abandon all its partitions "
        "and rejoin.",
    )


def left(group: ModernGroup[M, H], request: Heartbeat) -> M:
    """Let a member leave, for good or temporarily; return it.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        known = group.static_member(request.instance_id)
        member = known_static_member(known, request.member_id, request.instance_id)
    if request.member_epoch == LEAVE_EPOCH:
        group.remove(member)
    else:
        group.leave_for_a_while(member)
    return member
