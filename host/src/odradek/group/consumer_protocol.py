"""The consumer protocol (KIP-848) for all groups: routes heartbeats to groups and describes groups.

An empty group takes the protocol of the next member that joins. A classic group with members is migrated if
they are consumers and ``group.consumer.migration.policy`` allows it; otherwise the member gets
GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from odradek.group.classic_group import ClassicGroup
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.consumer_heartbeat import Client, check_request, check_subscription, heartbeat, leave
from odradek.group.consumer_member import ConsumerMember
from odradek.group.group import GroupType, not_of_type
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.group_member import JOIN_EPOCH
from odradek.group.group_migration import check_upgrade, upgrade
from odradek.group.member_sizes import topics_size
from odradek.group.topic_view import TopicView
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.wire.uuid_text import uuid_text

CONSUMER_MEMBER_TYPE = 1
"""Value of ``member_type`` in ConsumerGroupDescribe v1 (KIP-1099)."""
CLASSIC_MEMBER_TYPE = 0


def answer_heartbeat(
    coordinator: GroupCoordinator, request: ConsumerGroupHeartbeatRequest, version: int, client: Client
) -> ConsumerGroupHeartbeatResponse:
    """Let a member join, stay or leave.

    Raises:
        ApiError: The request was refused; see `check_request`, `check_subscription`, `group_for`, `heartbeat`
            and `leave`.
    """
    check_request(request, version, coordinator.config)
    coordinator.check_not_owned(request.group_id)
    group = group_for(coordinator, request)
    if request.member_epoch < JOIN_EPOCH:
        response = leave(group, request)
        coordinator.group_changed(group)
        return response
    check_subscription(request, coordinator.config)
    if not request.member_id:
        request.member_id = uuid_text(coordinator.random_uuid())
    if request.member_epoch == JOIN_EPOCH or request.subscribed_topic_names or request.subscribed_topic_regex:
        size = topics_size(request.subscribed_topic_names, request.subscribed_topic_regex)
        place = group.static_members.get(request.instance_id or "")
        coordinator.totals.check(group.sizes, (request.member_id, place), size)
    response = heartbeat(group, request, client)
    if coordinator.groups.get(group.group_id) is not group:
        coordinator.adopt(group)  # only now: a refused member must not create or migrate a group
    return response


def group_for(coordinator: GroupCoordinator, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
    """The member's group. For a member that joins, a new group if there is none, or an empty or classic one.

    A new group is not registered yet.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND; see also `check_upgrade` and `upgrade`. POLICY_VIOLATION: there are too
            many groups.
    """
    group = coordinator.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if request.member_epoch != JOIN_EPOCH:
        raise no_consumer_group(request.group_id, request.member_epoch, is_known=group is not None)
    if group is None:
        coordinator.groups_limit.check()
    elif not isinstance(group, ClassicGroup):
        raise not_of_type(request.group_id, GroupType.CONSUMER)
    fresh = coordinator.consumer_group(request.group_id, group.generation if group is not None else 0)
    if group is not None and not group.is_empty:
        check_upgrade(coordinator.config, group)
        upgrade(group, fresh)
    return fresh


def no_consumer_group(group_id: str, member_epoch: int, *, is_known: bool) -> ApiError:
    """The refusal of a member whose group does not exist or uses the classic protocol, in Kafka's words."""
    if is_known:
        return not_of_type(group_id, GroupType.CONSUMER)
    if member_epoch < JOIN_EPOCH:
        message = f"Group {group_id} not found."
    else:
        message = f"Consumer group {group_id} not found."
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def assigned_topics(coordinator: GroupCoordinator, group_id: str) -> Iterator[set[str]]:
    """The names of the topics that each member of a consumer group reads or will read."""
    group = coordinator.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        for member in list(group.members.values()):
            yield topic_names(group.topics, (*member.assigned, *group.target.of(member.member_id)))


def topic_names(topics: TopicView, partitions: Iterable[TopicPartition]) -> set[str]:
    """The names of the topics of partitions. A deleted topic has none."""
    names = map(topics.topic_name, {topic_id for topic_id, _ in partitions})
    return {name for name in names if name is not None}


DescribeMember = Callable[[], Member]


def describe(coordinator: GroupCoordinator, group_id: str) -> tuple[DescribedGroup, list[DescribeMember]]:
    """Describe a group without its members; return functions that describe each member with its assignment
    and its target.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND: there is no such group, or it uses another protocol.
    """
    group = coordinator.group(group_id)
    if not isinstance(group, ConsumerGroup):
        raise not_of_type(group_id, GroupType.CONSUMER)
    described = DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.target.epoch,
        assignor_name=group.assignor_name,
    )
    return described, [partial(described_member, group, member) for member in group.members.values()]


def described_member(group: ConsumerGroup, member: ConsumerMember) -> Member:
    topics = group.subscriptions.topics
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex or None,
        assignment=described_assignment(topics, member.assigned),
        target_assignment=described_assignment(topics, group.target.of(member.member_id)),
        member_type=CONSUMER_MEMBER_TYPE if member.classic is None else CLASSIC_MEMBER_TYPE,
    )


def described_assignment(topics: TopicView, partitions: Iterable[TopicPartition]) -> Assignment:
    """Describe partitions, by topic. Those of a deleted topic, which has no name, are left out."""
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(index)
    named = ((topic_id, topics.topic_name(topic_id)) for topic_id in by_topic)
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=by_topic[topic_id])
            for topic_id, name in named
            if name is not None
        ]
    )
