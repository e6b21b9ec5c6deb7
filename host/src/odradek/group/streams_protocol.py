"""The streams protocol (KIP-1071) for all groups: routes heartbeats to groups and describes groups.

An empty classic group becomes a streams group when such a member joins. Any other group of another kind is
GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from odradek.group.classic_group import ClassicGroup
from odradek.group.consumer_heartbeat import Client
from odradek.group.group import GroupType, not_of_type
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.group_member import JOIN_EPOCH
from odradek.group.streams_group import StreamsGroup
from odradek.group.streams_heartbeat import check_request, heartbeat, leave, listed
from odradek.group.streams_member import StreamsMember
from odradek.group.streams_topics import required_topics, topology_size
from odradek.group.task import Role, Task, TaskId
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages import streams_group_describe as wire
from odradek.wire.messages.streams_group_heartbeat import (
    Setting,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskOffset,
    TopicInfo,
    Topology,
    UserEndpoint,
)


def answer_heartbeat(
    coordinator: GroupCoordinator, request: StreamsGroupHeartbeatRequest, client: Client
) -> StreamsGroupHeartbeatResponse:
    """Let a member join, stay or leave; what has changed is stored when this returns.

    Raises:
        ApiError: The request was refused; see `check_request`, `group_for`, `heartbeat` and `leave`.
            COORDINATOR_NOT_AVAILABLE: the store cannot be written now. The client tries again.
    """
    check_request(request)
    coordinator.check_not_owned(request.group_id)
    group = group_for(coordinator, request)
    if request.member_epoch < JOIN_EPOCH:
        left = leave(group, request)
        coordinator.keep(group)
        return left
    if request.topology is not None:
        size = topology_size(request.topology) if group.topology is None else 0
        place = group.static_members.get(request.instance_id or "")
        coordinator.totals.check(group.sizes, (request.member_id, place), size)
    response = heartbeat(group, request, client)
    coordinator.keep(group)  # only now: a refused member must not create a group
    return response


def group_for(coordinator: GroupCoordinator, request: StreamsGroupHeartbeatRequest) -> StreamsGroup:
    """The member's group. For a member that joins, a new group if there is none, or an empty classic one.

    A new group is not registered yet.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND, or POLICY_VIOLATION: there are too many groups.
    """
    group = coordinator.groups.get(request.group_id)
    if isinstance(group, StreamsGroup):
        return group
    if group is not None and not (isinstance(group, ClassicGroup) and group.is_empty):
        raise not_of_type(request.group_id, GroupType.STREAMS)
    if request.member_epoch != JOIN_EPOCH:
        if group is not None:
            raise not_of_type(request.group_id, GroupType.STREAMS)
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {request.group_id} not found.")
    if group is None:
        coordinator.groups_limit.check()
    return coordinator.streams_group(request.group_id, 0 if group is None else group.generation)


def topology_topics(coordinator: GroupCoordinator, group_id: str) -> Iterator[set[str]]:
    """The names of the topics of each subtopology of a streams group."""
    group = coordinator.groups.get(group_id)
    if isinstance(group, StreamsGroup) and group.topology is not None:
        for each in group.topology.subtopologies:
            yield required_topics(Topology(subtopologies=[each]))


DescribeMember = Callable[[], wire.StreamsMember]


def describe(
    coordinator: GroupCoordinator, group_id: str
) -> tuple[wire.DescribedStreamsGroup, list[DescribeMember]]:
    """Describe a group without its members; return functions that describe each member with its tasks.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND: there is no such group, or it is of another kind.
    """
    group = coordinator.group(group_id)
    if not isinstance(group, StreamsGroup):
        raise not_of_type(group_id, GroupType.STREAMS)
    described = wire.DescribedStreamsGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.target.epoch,
        topology=described_topology(group),
        assignor_name=group.assignor_name,
    )
    return described, [partial(described_member, group, member) for member in group.members.values()]


def described_topology(group: StreamsGroup) -> wire.Topology | None:
    """The topology, with the numbers of partitions of internal topics that were decided."""
    if group.topology is None:
        return None
    counts = group.configured.counts

    def internal(topics: Iterable[TopicInfo]) -> list[TopicInfo]:
        return [
            TopicInfo(
                name=topic.name,
                partitions=counts.get(topic.name, topic.partitions),
                replication_factor=topic.replication_factor,
                topic_configs=topic.topic_configs,
            )
            for topic in topics
        ]

    return wire.Topology(
        epoch=group.topology.epoch,
        subtopologies=[
            wire.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=each.source_topics,
                repartition_sink_topics=each.repartition_sink_topics,
                state_changelog_topics=internal(each.state_changelog_topics),
                repartition_source_topics=internal(each.repartition_source_topics),
            )
            for each in group.topology.subtopologies
        ],
    )


def described_member(group: StreamsGroup, member: StreamsMember) -> wire.StreamsMember:
    host, port = member.user_endpoint or ("", 0)
    return wire.StreamsMember(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if member.user_endpoint is None else UserEndpoint(host=host, port=port),
        client_tags=[Setting(key=key, value=value) for key, value in member.client_tags.items()],
        task_offsets=described_offsets(member.task_offsets),
        task_end_offsets=described_offsets(member.task_end_offsets),
        assignment=described_tasks(member.assigned),
        target_assignment=described_tasks(group.target.of(member.member_id)),
    )


def described_offsets(offsets: Mapping[TaskId, int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=subtopology_id, partition=partition, offset=offset)
        for (subtopology_id, partition), offset in offsets.items()
    ]


def described_tasks(tasks: Iterable[Task]) -> wire.Tasks:
    """The tasks of a member by role."""
    return wire.Tasks(**{f"{role}_tasks": listed(tasks, role) for role in Role})
