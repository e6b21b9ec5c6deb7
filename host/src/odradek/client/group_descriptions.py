"""Descriptions of groups, from ConsumerGroupDescribe, DescribeGroups, ShareGroupDescribe or
StreamsGroupDescribe.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.coordinators import each_group
from odradek.client.errors import RequestFailed, UnsupportedVersion, failure
from odradek.client.leaders import Partition
from odradek.client.resources import Node
from odradek.wire.codec import decode
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages import consumer_group_describe as consumer
from odradek.wire.messages import describe_groups as classic
from odradek.wire.messages import share_group_describe as share
from odradek.wire.messages import streams_group_describe as streams
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment

CONSUMER = "consumer"  # ConsumerProtocol.PROTOCOL_TYPE
SHARE = "share"
"""The protocol type of share groups."""
STREAMS = "streams"
"""That of streams groups."""
DEAD = "Dead"
"""The state that brokers before 3.9 report for a group that does not exist."""
ELSEWHERE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
"""The errors of ConsumerGroupDescribe for groups of another protocol."""
MEMBER_TYPES = {0: False, 1: True}
"""Whether a member uses the consumer protocol, by its type."""
VERSION = struct.Struct(">h")


TasksByRole = Mapping[str, Mapping[str, Sequence[int]]]
"""The partitions of tasks, by role (``active``, ``standby``, ``warmup``) and subtopology."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsRun:
    """The tasks of a member of a streams group."""

    process_id: str
    tasks: TasksByRole
    target: TasksByRole
    """The tasks after the current rebalance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """One member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: Sequence[Partition]
    """Sorted."""
    target: Sequence[Partition] | None = None
    """The assignment after the current rebalance; None in the classic protocol."""
    epoch: int | None = None
    """None in the classic protocol."""
    upgraded: bool | None = None
    """Whether the member uses the consumer protocol; None if the broker does not say."""
    streams: StreamsRun | None = None
    """Set for a member of a streams group. ``assignment`` has what its active tasks read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """One group."""

    group_id: str
    coordinator: Node
    protocol_type: str
    """``consumer``, ``connect`` ...; empty for a group without members."""
    state: str
    assignor: str
    """Name of the assignor, or of the classic protocol; empty if none is chosen yet."""
    members: Sequence[MemberDescription]
    epoch: int | None = None
    """None in the classic protocol, as is ``assignment_epoch``."""
    assignment_epoch: int | None = None
    topology_epoch: int | None = None
    """None unless it is a streams group."""


def describe_groups(cluster: Cluster, groups: Iterable[str]) -> dict[str, GroupDescription | RequestFailed]:
    """Describe groups; see `AdminClient.describe_groups`."""
    return each_group(cluster, groups, described)


def described(
    connection: Connection, node: Node, groups: list[str]
) -> dict[str, GroupDescription | RequestFailed]:
    """Describe the groups of one coordinator."""
    found: dict[str, GroupDescription | RequestFailed] = {}
    with suppress(UnsupportedVersion):
        found |= by_consumer_protocol(connection, node, groups)
    others = [group for group in groups if group not in found or is_elsewhere(found[group])]
    if others:
        found |= by_classic_protocol(connection, node, others)
    for by_protocol in (by_share_protocol, by_streams_protocol):
        missing = [group for group in others if group in found and is_elsewhere(found[group])]
        if missing:
            with suppress(UnsupportedVersion):
                more = by_protocol(connection, node, missing)
                found |= {group: each for group, each in more.items() if not is_elsewhere(each)}
    return found


def is_elsewhere(outcome: GroupDescription | RequestFailed) -> bool:
    """Whether the group may use another protocol."""
    return isinstance(outcome, RequestFailed) and outcome.code in ELSEWHERE


AssignedGroup = consumer.DescribedGroup | share.DescribedShareGroup | streams.DescribedStreamsGroup
"""A group to whose members the broker assigns."""


def by_consumer_protocol(
    connection: Connection, node: Node, groups: list[str]
) -> dict[str, GroupDescription | RequestFailed]:
    """Describe groups by ConsumerGroupDescribe, which refuses groups of another protocol."""
    response: consumer.ConsumerGroupDescribeResponse = connection.send(
        consumer.ConsumerGroupDescribeRequest(group_ids=groups)
    )
    return {
        row.group_id: described_group(row, node, CONSUMER, consumer_members(row)) for row in response.groups
    }


def by_share_protocol(
    connection: Connection, node: Node, groups: list[str]
) -> dict[str, GroupDescription | RequestFailed]:
    """Describe groups by ShareGroupDescribe, which refuses groups of another protocol."""
    response: share.ShareGroupDescribeResponse = connection.send(
        share.ShareGroupDescribeRequest(group_ids=groups)
    )
    return {row.group_id: described_group(row, node, SHARE, share_members(row)) for row in response.groups}


def by_streams_protocol(
    connection: Connection, node: Node, groups: list[str]
) -> dict[str, GroupDescription | RequestFailed]:
    """Describe groups by StreamsGroupDescribe, which refuses groups of another protocol."""
    response: streams.StreamsGroupDescribeResponse = connection.send(
        streams.StreamsGroupDescribeRequest(group_ids=groups)
    )
    return {
        row.group_id: described_group(
            row, node, STREAMS, streams_members(row), row.topology.epoch if row.topology else None
        )
        for row in response.groups
    }


def described_group(
    row: AssignedGroup,
    node: Node,
    protocol_type: str,
    members: Sequence[MemberDescription],
    topology_epoch: int | None = None,
) -> GroupDescription | RequestFailed:
    """Convert a group, or its error."""
    return failure(row.error_code, row.error_message, row.group_id) or GroupDescription(
        group_id=row.group_id,
        coordinator=node,
        protocol_type=protocol_type,
        state=row.group_state,
        assignor=row.assignor_name or "",
        members=members,
        epoch=row.group_epoch,
        assignment_epoch=row.assignment_epoch,
        topology_epoch=topology_epoch,
    )


def consumer_members(row: consumer.DescribedGroup) -> list[MemberDescription]:
    """Convert the members of a group of the consumer protocol."""
    return [
        MemberDescription(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.client_host,
            assignment=partitions(member.assignment),
            target=partitions(member.target_assignment),
            epoch=member.member_epoch,
            upgraded=MEMBER_TYPES.get(member.member_type),
        )
        for member in row.members
    ]


def share_members(row: share.DescribedShareGroup) -> list[MemberDescription]:
    """Convert the members of a share group."""
    return [
        MemberDescription(
            member_id=member.member_id,
            instance_id=None,
            client_id=member.client_id,
            host=member.client_host,
            assignment=partitions(member.assignment),
            epoch=member.member_epoch,
        )
        for member in row.members
    ]


def streams_members(row: streams.DescribedStreamsGroup) -> list[MemberDescription]:
    """Convert the members of a streams group, which have the partitions that their active tasks read."""
    sources = sources_of(row)
    return [
        MemberDescription(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.client_host,
            assignment=partitions_of_tasks(member.assignment, sources),
            target=partitions_of_tasks(member.target_assignment, sources),
            epoch=member.member_epoch,
            streams=StreamsRun(
                process_id=member.process_id,
                tasks=tasks_by_role(member.assignment),
                target=tasks_by_role(member.target_assignment),
            ),
        )
        for member in row.members
    ]


def tasks_by_role(tasks: streams.Tasks) -> TasksByRole:
    """The tasks of a member."""
    roles = {"active": tasks.active_tasks, "standby": tasks.standby_tasks, "warmup": tasks.warmup_tasks}
    return {role: {each.subtopology_id: each.partitions for each in listed} for role, listed in roles.items()}


def sources_of(row: streams.DescribedStreamsGroup) -> dict[str, list[str]]:
    """The topics that each subtopology of a streams group reads."""
    subtopologies = (row.topology.subtopologies or ()) if row.topology else ()
    return {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies
    }


def partitions_of_tasks(tasks: streams.Tasks, sources: Mapping[str, Sequence[str]]) -> list[Partition]:
    """The partitions that active tasks read, sorted. A task reads one partition of each source topic."""
    return sorted(
        (topic, index)
        for task in tasks.active_tasks
        for topic in sources.get(task.subtopology_id, ())
        for index in task.partitions
    )


def partitions(assignment: consumer.Assignment) -> list[Partition]:
    """The assigned partitions of a member, sorted."""
    return sorted((row.topic_name, index) for row in assignment.topic_partitions for index in row.partitions)


def by_classic_protocol(
    connection: Connection, node: Node, groups: list[str]
) -> dict[str, GroupDescription | RequestFailed]:
    response: classic.DescribeGroupsResponse = connection.send(classic.DescribeGroupsRequest(groups=groups))
    return {row.group_id: classic_group(row, node) for row in response.groups}


def classic_group(row: classic.DescribedGroup, node: Node) -> GroupDescription | RequestFailed:
    """Convert a group of the classic protocol. The state Dead means that the group does not exist."""
    if row.error_code == ErrorCode.NONE and row.group_state == DEAD:
        return RequestFailed(ErrorCode.GROUP_ID_NOT_FOUND, subject=row.group_id)
    error = failure(row.error_code, row.error_message, row.group_id)
    if error is not None:
        return error
    return GroupDescription(
        group_id=row.group_id,
        coordinator=node,
        protocol_type=row.protocol_type,
        state=row.group_state,
        assignor=row.protocol_data,
        members=[
            MemberDescription(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                host=member.client_host,
                assignment=assigned(member.member_assignment) if row.protocol_type == CONSUMER else (),
            )
            for member in row.members
        ],
    )


def assigned(assignment: bytes) -> list[Partition]:
    """The partitions that the leader assigned to a member; empty during a rebalance or if unreadable."""
    if len(assignment) < VERSION.size:
        return []
    (version,) = VERSION.unpack_from(assignment)
    known = max(0, min(version, ConsumerProtocolAssignment.VERSIONS.last))
    try:
        read = decode(ConsumerProtocolAssignment, known, assignment, VERSION.size)
    except WireError:
        return []
    return sorted((row.topic, index) for row in read.assigned_partitions for index in row.partitions)
