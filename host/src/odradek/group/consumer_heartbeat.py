"""A heartbeat of the consumer protocol, from the checks of the request to the response (KIP-848).

Everything that can refuse a heartbeat is checked before anything changes, so a refused request leaves the
group unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.consumer_member import ConsumerMember
from odradek.group.current_assignment import reconcile
from odradek.group.group_config import MAX_MEMBER_METADATA_BYTES, GroupConfig
from odradek.group.group_member import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from odradek.group.member_admission import admitted, left
from odradek.group.subscribed_regex import compiled
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

OWN_MEMBER_ID_VERSION = 1
"""The first version in which the client generates its member id (KIP-1082)."""


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a heartbeat. ConsumerGroupDescribe shows its id and host."""

    client_id: str
    host: str
    sees: Callable[[str], bool] = lambda _name: True
    """Whether an expression may match a topic of this name for this client."""


def invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, config: GroupConfig) -> None:
    """Check a request without its group.

    Raises:
        ApiError: INVALID_REQUEST or UNSUPPORTED_ASSIGNOR.
    """
    check_names(request, version)
    if request.member_epoch == JOIN_EPOCH:
        check_join(request)
    elif request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise invalid("MemberEpoch is invalid.")
    assignors = config.consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )


def check_subscription(request: ConsumerGroupHeartbeatRequest, config: GroupConfig) -> None:
    """Check what a member of a group that exists, or that it creates, wants to read.

    Raises:
        ApiError: INVALID_REQUEST or INVALID_REGULAR_EXPRESSION.
    """
    names = request.subscribed_topic_names or ()
    if sum(map(len, names)) + len(names) > MAX_MEMBER_METADATA_BYTES:
        raise invalid(f"SubscribedTopicNames take more than {MAX_MEMBER_METADATA_BYTES} bytes.")
    if request.subscribed_topic_regex:
        compiled(request.subscribed_topic_regex, config.regex_bounds)


def check_names(request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    """Check the fields that may be null but not empty."""
    may_have_none = request.member_epoch in (JOIN_EPOCH, STATIC_LEAVE_EPOCH)
    needs_member_id = version >= OWN_MEMBER_ID_VERSION or not may_have_none
    for name, text in (
        ("GroupId", request.group_id),
        ("MemberId", request.member_id if needs_member_id else None),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise invalid(f"{name} can't be empty.")


def check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    """Check a request to join, which must have all fields and own no partitions."""
    if request.rebalance_timeout_ms == -1:
        raise invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        )


def heartbeat(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, client: Client
) -> ConsumerGroupHeartbeatResponse:
    """Respond to a member that joins or stays.

    Args:
        group: The member's group; it may be new if the member joins.
        request: Checked by `check_request`, with a member id.
        client: The sender.

    Raises:
        ApiError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID or
            UNRELEASED_INSTANCE_ID.
    """
    owned = owned_partitions(request)
    group.subscriptions.sees = client.sees
    group.subscriptions.begin(group.clock.monotonic_ms(), group.config.consumer_regex_refresh_interval_ms)
    member = admitted(group, request, owned)
    assigned = member.assigned
    if member.classic is not None:
        member.speak_classic(None)
        group.measure(member)
    names = member.subscribed_topic_names
    changed = update(group, member, request, client)
    if names == member.subscribed_topic_names and group.subscriptions.is_new(member.subscribed_topic_regex):
        changed = False  # the group begins a new epoch when it knows the topics, with the next heartbeat
    step(group, member, changed, owned)
    group.restart_session(member)
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=group.config.consumer_heartbeat_interval_ms,
        assignment=assignment(member)
        if is_full(request) or member.assigned.keys() != assigned.keys()
        else None,
    )


def step(
    group: ConsumerGroup,
    member: ConsumerMember,
    subscription_changed: bool,
    owned: AbstractSet[TopicPartition] | None,
) -> None:
    """Move a member towards the newest target as far as possible.

    Args:
        group: The member's group; a new target is computed if one is due.
        member: The member, updated from its request.
        subscription_changed: Whether this changed its subscription.
        owned: The partitions that the client reports to own; None if it reports none.
    """
    assigned, pending = member.assigned, member.pending_revocation
    state, epoch = member.state, member.member_epoch
    group.catch_up(subscription_changed)
    reconcile(
        member,
        assignment_epoch=group.target.epoch,
        target=group.target.of(member.member_id),
        topic_ids=group.subscriptions.topic_ids(member),
        subscription_changed=subscription_changed,
        is_free=lambda partition: partition not in group.holders,
        owned=owned,
    )
    if member.assigned is not assigned or member.pending_revocation is not pending:
        group.hold(member, assigned, pending)
        group.measure(member)
    elif subscription_changed:
        group.measure(member)
    if (member.state, member.member_epoch) != (state, epoch) or member.pending_revocation is not pending:
        # The member has progressed, or has more to give up: its time starts again.
        group.restart_rebalance(member)


def owned_partitions(request: ConsumerGroupHeartbeatRequest) -> AbstractSet[TopicPartition] | None:
    """The partitions that the client reports to own; None if it does not report them."""
    if request.topic_partitions is None:
        return None
    return {(topic.topic_id, index) for topic in request.topic_partitions for index in topic.partitions}


def update(
    group: ConsumerGroup, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client
) -> bool:
    """Update a member from its request; return whether the subscription has changed."""
    before = (member.subscribed_topic_names, member.subscribed_topic_regex)
    member.client_id, member.client_host = client.client_id, client.host
    if request.rack_id is not None:
        member.rack_id = request.rack_id
    if request.rebalance_timeout_ms != -1:
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        member.server_assignor = request.server_assignor
    if request.subscribed_topic_names is not None:
        member.subscribed_topic_names = group.subscriptions.shared(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        member.subscribed_topic_regex = request.subscribed_topic_regex
    return before != (member.subscribed_topic_names, member.subscribed_topic_regex)


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the client needs its full assignment: it joins, or it does not know the last response."""
    subscribed = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    says_all = request.rebalance_timeout_ms != -1 and subscribed and request.topic_partitions is not None
    return request.member_epoch == JOIN_EPOCH or says_all


def assignment(member: ConsumerMember) -> Assignment:
    """The assigned partitions of a member, by topic."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(member.assigned):
        topics.setdefault(topic_id, []).append(index)
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ]
    )


def leave(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """Respond to a member that leaves, for good or temporarily.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    member = left(group, request)
    return ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
