"""Members of the classic protocol in a group of the consumer protocol, while the group is migrated.

After the ``classicGroup...ToConsumerGroup`` half of GroupMetadataManager.java (KIP-848). The group has no
leader, because the broker assigns. For such a member the generation is its member epoch. Its JoinGroup acts
as a full heartbeat of the consumer protocol, SyncGroup fetches its assignment, and Heartbeat only tells it to
join again.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

from odradek.group.classic_join import REQUIRES_MEMBER_ID, Join
from odradek.group.classic_leave import answer
from odradek.group.classic_member import Protocols
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_group import ConsumerGroup, check_generation
from odradek.group.consumer_heartbeat import step
from odradek.group.consumer_member import ClassicMembership, ConsumerMember
from odradek.group.consumer_subscription import CONSUMER_PROTOCOL_TYPE
from odradek.group.embedded_protocol import assignment_bytes, partition_ids, subscription_of
from odradek.group.group_member import MemberState
from odradek.group.member_admission import check_room, known_static_member
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.join_group import JoinGroupResponse
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


@dataclass(slots=True, eq=False)
class MixedJoin(Join):
    """One JoinGroup to a group of the consumer protocol with members. It never waits for other members."""

    group: ConsumerGroup

    def answer(self) -> JoinGroupResponse:
        """Admit the member.

        Raises:
            ApiError: INVALID_REQUEST: too much metadata; GROUP_MAX_SIZE_REACHED; INCONSISTENT_GROUP_PROTOCOL;
                UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID.
        """
        request, group = self.request, self.group
        protocols = self.protocols
        self.check_size()
        member_id = request.member_id or self.new_member_id()
        check_room(group, member_id)
        name, subscription = self.spoken(member_id, protocols)
        needs_id = not request.member_id and request.group_instance_id is None
        if needs_id and self.joiner.api_version >= REQUIRES_MEMBER_ID:
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        member = self.admitted(member_id)
        member.speak_classic(ClassicMembership(request.session_timeout_ms, protocols))
        group.measure(member)
        # A member gives up everything that it does not report as owned before it joins: reconcile it at once.
        step(group, member, self.update(member, subscription), self.owned(subscription))
        self.wait_for_sync(member)
        group.settle_protocol()
        return JoinGroupResponse(
            member_id=member_id,
            generation_id=member.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=name,
        )

    def spoken(self, member_id: str, protocols: Protocols) -> tuple[str, ConsumerProtocolSubscription]:
        """The first protocol of the member that all classic members support, and its subscription."""
        others = [
            member.classic.protocol_names
            for member in self.group.members.values()
            if member.classic is not None and member.member_id != member_id
        ]
        if self.request.protocol_type == CONSUMER_PROTOCOL_TYPE:
            for name, metadata in protocols:
                subscription = subscription_of(metadata)
                if subscription is not None and all(name in names for names in others):
                    return name, subscription
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def admitted(self, member_id: str) -> ConsumerMember:
        """The member of the request, or a new one."""
        instance_id = self.request.group_instance_id
        if instance_id is None:
            member = self.group.members.get(member_id)
        else:
            member = self.group.static_member(instance_id)
            if self.request.member_id:
                return known_static_member(member, member_id, instance_id)
            if member is not None:
                return self.group.replace(member, member_id)
        if member is None:
            member = ConsumerMember(member_id)
            self.group.add(member, instance_id)
        return member

    def update(self, member: ConsumerMember, subscription: ConsumerProtocolSubscription) -> bool:
        """Update a member from the request; return whether the subscription has changed."""
        before = (member.subscribed_topic_names, member.subscribed_topic_regex)
        member.client_id, member.client_host = self.joiner.client_id, self.joiner.client_host
        member.rack_id = subscription.rack_id or member.rack_id
        member.rebalance_timeout_ms = self.rebalance_timeout_ms
        member.subscribed_topic_names = self.group.subscriptions.shared(subscription.topics)
        member.subscribed_topic_regex = ""
        member.server_assignor = None
        return before != (member.subscribed_topic_names, member.subscribed_topic_regex)

    def owned(self, subscription: ConsumerProtocolSubscription) -> AbstractSet[TopicPartition]:
        """The partitions that the member owns. If it reports none, it has given up everything to join."""
        return partition_ids(self.group.subscriptions.topics, subscription.owned_partitions)

    def wait_for_sync(self, member: ConsumerMember) -> None:
        """Remove the member if it does not fetch its assignment in time."""
        assert member.classic is not None
        deadline_ms = self.group.clock.monotonic_ms() + max(member.rebalance_timeout_ms, 0)
        member.classic.sync = self.group.timer.schedule(deadline_ms, partial(self.group.expel, member))
        self.group.restart_session(member)


def classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicMembership]:
    """Find a member of the classic protocol and check its generation.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION.
    """
    member = identified(group, member_id, instance_id)
    if member.classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    check_generation(generation_id, member)
    return member, member.classic


def identified(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Find a member by its ids."""
    if instance_id is None:
        return group.member(member_id)
    return known_static_member(group.static_member(instance_id), member_id, instance_id)


def sync(group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
    """Return the assignment of a member.

    Raises:
        ApiError: See `classic_member`; INCONSISTENT_GROUP_PROTOCOL; REBALANCE_IN_PROGRESS: join again.
    """
    member, membership = classic_member(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    name = request.protocol_name
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
        name is not None and name not in membership.protocol_names
    ):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    revoking = member.state is MemberState.UNREVOKED
    # While it revokes, the member needs its smaller assignment, even if a newer target exists.
    if member.member_epoch < group.target.epoch and not revoking:
        raise rejoin(group, member, membership)
    membership.stop_timers()
    group.restart_session(member)
    return SyncGroupResponse(
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=name or membership.protocols[0][0],
        assignment=assignment_bytes(group.subscriptions.topics, member.assigned),
    )


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest) -> None:
    """Keep a member alive.

    Raises:
        ApiError: See `classic_member`; REBALANCE_IN_PROGRESS: the member stays alive but must join again, to
            give up partitions, to get partitions that are free now, or for a new target.
    """
    member, membership = classic_member(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    group.restart_session(member)
    group.catch_up(False)
    if (
        member.member_epoch < group.target.epoch
        or member.state is MemberState.UNREVOKED
        or (member.state is MemberState.UNRELEASED and not waits_for_others(group, member))
    ):
        raise rejoin(group, member, membership)


def waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether another member still holds a partition of the member's target."""
    return any(
        partition in group.holders
        for partition in group.target.of(member.member_id)
        if partition not in member.assigned
    )


def rejoin(group: ConsumerGroup, member: ConsumerMember, membership: ClassicMembership) -> ApiError:
    """Make the member join again, and remove it if it does not do so in time."""
    if membership.join is None:
        deadline_ms = group.clock.monotonic_ms() + max(member.rebalance_timeout_ms, 0)
        membership.join = group.timer.schedule(deadline_ms, partial(group.expel, member))
    return ApiError(ErrorCode.REBALANCE_IN_PROGRESS)


def leave(group: ConsumerGroup, request: LeaveGroupRequest) -> list[MemberResponse]:
    """Remove members of either protocol, which an operator may name; return a response for each."""
    leaving: dict[str, ConsumerMember] = {}
    answers = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            member = leaver(group, identity)
            leaving[member.member_id] = member
        except ApiError as error:
            code = error.code
        answers.append(answer(identity, code))
    if leaving:
        group.expel(*leaving.values())
    return answers


def leaver(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """The member to remove. An operator may give only the instance id."""
    instance_id = identity.group_instance_id
    if not identity.member_id and instance_id is not None:
        member = group.static_member(instance_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member
    return identified(group, identity.member_id, instance_id)
