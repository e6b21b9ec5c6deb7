"""A heartbeat of a share group, from the checks of the request to the response (KIP-932)."""

from __future__ import annotations

from odradek.group.consumer_heartbeat import Client, invalid
from odradek.group.group_config import MAX_MEMBER_METADATA_BYTES
from odradek.group.group_member import JOIN_EPOCH, LEAVE_EPOCH
from odradek.group.share_group import ShareGroup
from odradek.group.share_member import ShareMember, indexes_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import Assignment, TopicPartitions
from odradek.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

MAX_MEMBER_ID_LENGTH = 36


def check_member_id(member_id: str) -> None:
    """Check the id that a client has made for itself, before its rights.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if not member_id or len(member_id) > MAX_MEMBER_ID_LENGTH:
        raise ApiError(ErrorCode.INVALID_REQUEST)


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """Check a request without its group, in Kafka's order.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise invalid(f"{name} can't be empty.")
    names = request.subscribed_topic_names
    if request.member_epoch == JOIN_EPOCH and not names:
        raise invalid("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise invalid("MemberEpoch is invalid.")
    if names and sum(map(len, names)) + len(names) > MAX_MEMBER_METADATA_BYTES:
        raise invalid(f"SubscribedTopicNames take more than {MAX_MEMBER_METADATA_BYTES} bytes.")


def heartbeat(
    group: ShareGroup, request: ShareGroupHeartbeatRequest, client: Client
) -> ShareGroupHeartbeatResponse:
    """Respond to a member that joins or stays. The caller stores what has changed.

    Args:
        group: The member's group; it may be new if the member joins.
        request: Checked by `check_request`.
        client: The sender.

    Raises:
        ApiError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID or FENCED_MEMBER_EPOCH.
    """
    member = admitted(group, request)
    is_new = member.member_id not in group.members
    changed = update(member, request, client)
    if changed or is_new:
        group.put(member)
    group.catch_up(subscription_changed=changed or is_new)
    was_assigned = member.assigned
    if member.member_epoch != group.assignment_epoch:
        member.previous_member_epoch, member.member_epoch = member.member_epoch, group.assignment_epoch
        member.assigned = member.target
        group.put(member)
    group.restart_session(member)
    is_full = request.member_epoch == JOIN_EPOCH or request.subscribed_topic_names is not None
    return ShareGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=group.config.share.heartbeat_interval_ms,
        assignment=assignment(member) if is_full or member.assigned != was_assigned else None,
    )


def admitted(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """The member of a request, new if it joins and the group does not have it."""
    most = group.config.share.max_size
    member = group.members.get(request.member_id)
    if member is None and len(group.members) >= most:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {most} members.",
        )
    if member is None and request.member_epoch == JOIN_EPOCH:
        return ShareMember(request.member_id)
    member = group.member(request.member_id)
    check_epoch(member, request.member_epoch)
    return member


def check_epoch(member: ShareMember, received: int) -> None:
    """Check the epoch of a request. If a response was lost, the client still sends the previous one.

    Raises:
        ApiError: FENCED_MEMBER_EPOCH.
    """
    if received in (JOIN_EPOCH, member.member_epoch, member.previous_member_epoch):
        return
    if received > member.member_epoch:
        comparison, previous = "greater", ""
    else:
        comparison = "smaller"
        previous = f", and it does not match the previous member epoch ({member.previous_member_epoch})"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {comparison} member epoch ({received}) than the one known by the "
        f"group coordinator ({member.member_epoch}){previous}. The member must abandon all its partitions "
        "and rejoin.",
    )


def update(member: ShareMember, request: ShareGroupHeartbeatRequest, client: Client) -> bool:
    """Update a member from its request; return whether the subscription has changed."""
    before = member.subscribed_topic_names
    member.client_id, member.client_host = client.client_id, client.host
    if request.rack_id is not None:
        member.rack_id = request.rack_id
    if request.subscribed_topic_names is not None:
        member.subscribed_topic_names = frozenset(request.subscribed_topic_names)
    return member.subscribed_topic_names != before


def assignment(member: ShareMember) -> Assignment:
    """The partitions of a member, by topic."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in indexes_of(member.assigned).items()
        ]
    )


def leave(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    """Respond to a member that leaves.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID.
    """
    group.remove(group.member(request.member_id))
    return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
