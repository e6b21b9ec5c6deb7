"""Share groups (KIP-932): routes heartbeats to groups, stores groups, describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from odradek.group.consumer_heartbeat import Client
from odradek.group.consumer_protocol import described_assignment, topic_names
from odradek.group.group import GroupType, not_of_type
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.group_member import JOIN_EPOCH
from odradek.group.member_sizes import topics_size
from odradek.group.share_group import ShareGroup
from odradek.group.share_heartbeat import check_request, heartbeat, leave
from odradek.group.share_member import ShareMember
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.share_group_describe import DescribedShareGroup
from odradek.wire.messages.share_group_describe import ShareMember as DescribedMember
from odradek.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

DescribeMember = Callable[[], DescribedMember]


def answer_heartbeat(
    coordinator: GroupCoordinator, request: ShareGroupHeartbeatRequest, client: Client
) -> ShareGroupHeartbeatResponse:
    """Let a member join, stay or leave; what has changed is stored when this returns.

    Raises:
        ApiError: The request was refused; see `check_request`, `group_for`, `heartbeat` and `leave`.
            COORDINATOR_NOT_AVAILABLE: the store cannot be written now. The client tries again.
    """
    check_request(request)
    coordinator.check_not_owned(request.group_id)
    group = group_for(coordinator, request)
    if request.member_epoch < JOIN_EPOCH:
        response = leave(group, request)
    else:
        if request.subscribed_topic_names:
            size = topics_size(request.subscribed_topic_names, None)
            coordinator.totals.check(group.sizes, (request.member_id,), size)
        response = heartbeat(group, request, client)
    coordinator.keep(group)
    coordinator.shares.make(group, group.unknown())
    return response


def group_for(coordinator: GroupCoordinator, request: ShareGroupHeartbeatRequest) -> ShareGroup:
    """The member's group; a new one, not registered yet, for a member that joins.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND; POLICY_VIOLATION: there are too many groups.
    """
    group = coordinator.groups.get(request.group_id)
    if group is None:
        if request.member_epoch != JOIN_EPOCH:
            kind = "Group" if request.member_epoch < JOIN_EPOCH else "Share group"  # Kafka's words
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {request.group_id} not found.")
        coordinator.groups_limit.check()
        return coordinator.share_group(request.group_id)
    if not isinstance(group, ShareGroup):
        raise not_of_type(request.group_id, GroupType.SHARE)
    return group


def share_group(coordinator: GroupCoordinator, group_id: str) -> ShareGroup:
    """The share group with this id.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND.
    """
    group = coordinator.group(group_id)
    if not isinstance(group, ShareGroup):
        raise not_of_type(group_id, GroupType.SHARE)
    return group


def assigned_topics(coordinator: GroupCoordinator, group_id: str) -> Iterator[set[str]]:
    """The names of the topics that each member of a share group reads."""
    group = coordinator.groups.get(group_id)
    if isinstance(group, ShareGroup):
        for member in list(group.members.values()):
            yield topic_names(group.topics, member.assigned)


def describe(
    coordinator: GroupCoordinator, group_id: str
) -> tuple[DescribedShareGroup, list[DescribeMember]]:
    """Describe a group without its members; return functions that describe each member.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND: there is no such group, or it is of another type.
    """
    group = share_group(coordinator, group_id)
    described = DescribedShareGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor_name,
    )
    return described, [partial(described_member, group, member) for member in group.members.values()]


def described_member(group: ShareGroup, member: ShareMember) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        assignment=described_assignment(group.topics, member.assigned),
    )
