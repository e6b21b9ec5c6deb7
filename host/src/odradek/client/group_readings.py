"""What one broker says of the groups that it coordinates: their offsets, members and assignments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from odradek.client.connection import Connection
from odradek.client.errors import UnsupportedVersion, check, known_code
from odradek.client.group_descriptions import (
    GroupDescription,
    by_classic_protocol,
    by_consumer_protocol,
    by_streams_protocol,
    described,
)
from odradek.client.group_offsets import offset_rows, portions
from odradek.client.groups import GroupListing, listing
from odradek.client.resources import Node
from odradek.lag.group_lag import Owner
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareOffsetsGroup,
)
from odradek.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.wire.messages.offset_fetch import (
    OffsetFetchResponseTopics,
)
from odradek.wire.messages.share_group_describe import ShareGroupDescribeRequest

CLASSIC, CONSUMER, SHARE, STREAMS = "Classic", "Consumer", "Share", "Streams"
WITHOUT_MEMBERS: Final = ("Empty", "Dead")

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and index."""
Assigned = Mapping[str, Mapping[int, Owner]]
"""The members by partition, by topic: one of them if several members of a share group have a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """One group."""

    listed: GroupListing
    offsets: Offsets
    lags: Offsets | None = None
    """Of a share group, as the broker counts them; None for other groups."""
    members: int = 0
    assigned: Assigned = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerReading:
    """The groups of one broker."""

    groups: Mapping[str, GroupReading]
    refused: frozenset[str] = frozenset()
    """Those whose offsets this client may not read."""
    unknown: frozenset[str] = frozenset()
    """Those about which the broker cannot tell now."""


def read_groups(connection: Connection, node: Node, wants: Callable[[str], bool]) -> BrokerReading:
    """Read the groups that a broker coordinates.

    Args:
        connection: To the broker.
        node: The broker.
        wants: Whether a group of this id is read.

    Raises:
        ClientError: The broker does not answer, or cannot list its groups now.
    """
    response: ListGroupsResponse = connection.send(ListGroupsRequest())
    check(response.error_code, subject="ListGroups")
    listed = {row.group_id: listing(row) for row in response.groups if wants(row.group_id)}
    shares = {group for group, each in listed.items() if each.type == SHARE}
    offsets: dict[str, Offsets] = {}
    lags: dict[str, Offsets] = {}
    codes: dict[str, ErrorCode] = {}
    """The answer about the offsets of each group."""
    read_offsets(connection, sorted(listed.keys() - shares), offsets, codes)
    for some in portions(sorted(shares)):
        read_share_offsets(connection, some, offsets, lags, codes)
    failed = {group for group, code in codes.items() if code}
    members: dict[str, tuple[int, Assigned]] = {}
    for kind in {each.type for each in listed.values()}:
        alive = [
            group
            for group, each in listed.items()
            if each.type == kind and each.state not in WITHOUT_MEMBERS and group not in failed
        ]
        for some in portions(alive):
            with suppress(UnsupportedVersion):
                members.update(MEMBERS.get(kind, members_of_any)(connection, node, some))
    refused = {group for group, code in codes.items() if code is ErrorCode.GROUP_AUTHORIZATION_FAILED}
    return BrokerReading(
        groups={
            group: GroupReading(
                listed=each,
                offsets=offsets.get(group, {}),
                lags=lags.get(group) if group in shares else None,
                members=members.get(group, (0, {}))[0],
                assigned=members.get(group, (0, {}))[1],
            )
            for group, each in listed.items()
            if group not in failed
        },
        refused=frozenset(refused),
        unknown=frozenset(failed - refused),
    )


def read_offsets(
    connection: Connection, groups: Sequence[str], offsets: dict[str, Offsets], codes: dict[str, ErrorCode]
) -> None:
    """Read the committed offsets of groups, or the reasons why they cannot be read."""
    codes.update(dict.fromkeys(groups, ErrorCode.UNKNOWN_SERVER_ERROR))  # those that the answer lacks
    for row in offset_rows(connection, groups):
        codes[row.group_id] = known_code(row.error_code)
        offsets[row.group_id] = offsets_of(row.topics)


def offsets_of(topics: Iterable[OffsetFetchResponseTopics]) -> Offsets:
    """The offsets that a group has committed. One that an error hides is left out."""
    return {
        topic.name: {
            row.partition_index: row.committed_offset
            for row in topic.partitions
            if row.committed_offset >= 0 and not row.error_code
        }
        for topic in topics
    }


def read_share_offsets(
    connection: Connection,
    groups: Sequence[str],
    offsets: dict[str, Offsets],
    lags: dict[str, Offsets],
    codes: dict[str, ErrorCode],
) -> None:
    """Read the offsets and lags of share groups. A broker that does not tell them (before 4.2) leaves them
    without.
    """
    request = DescribeShareGroupOffsetsRequest(
        groups=[ShareOffsetsGroup(group_id=each, topics=None) for each in groups]
    )
    try:
        response: DescribeShareGroupOffsetsResponse = connection.send(request, least_version=1)
    except UnsupportedVersion:
        return
    for group in response.groups:
        codes[group.group_id] = known_code(group.error_code)
        starts: dict[str, dict[int, int]] = defaultdict(dict)
        behind: dict[str, dict[int, int]] = defaultdict(dict)
        for topic in group.topics:
            for row in topic.partitions:
                if not row.error_code and row.start_offset >= 0 and row.lag >= 0:
                    starts[topic.topic_name][row.partition_index] = row.start_offset
                    behind[topic.topic_name][row.partition_index] = row.lag
        offsets[group.group_id], lags[group.group_id] = dict(starts), dict(behind)


Members = Mapping[str, tuple[int, Assigned]]
"""The number of members and their partitions, by group."""


def of_descriptions(found: Mapping[str, object]) -> Members:
    """The members of described groups; a group that cannot be described is left out."""
    members: dict[str, tuple[int, Assigned]] = {}
    for group, each in found.items():
        if isinstance(each, GroupDescription):
            assigned: dict[str, dict[int, Owner]] = defaultdict(dict)
            for member in each.members:
                owner = Owner.of(member.member_id, member.client_id, member.host)
                for topic, index in member.assignment:
                    assigned[topic][index] = owner
            members[group] = len(each.members), dict(assigned)
    return members


def members_of_any(connection: Connection, node: Node, groups: list[str]) -> Members:
    return of_descriptions(described(connection, node, groups))


def members_of_classic(connection: Connection, node: Node, groups: list[str]) -> Members:
    return of_descriptions(by_classic_protocol(connection, node, groups))


def members_of_consumer(connection: Connection, node: Node, groups: list[str]) -> Members:
    return of_descriptions(by_consumer_protocol(connection, node, groups))


def members_of_share(connection: Connection, _node: Node, groups: list[str]) -> Members:
    """The members of share groups."""
    response = connection.send(ShareGroupDescribeRequest(group_ids=groups))
    members: dict[str, tuple[int, Assigned]] = {}
    for group in response.groups:
        assigned: dict[str, dict[int, Owner]] = defaultdict(dict)
        for member in group.members:
            owner = Owner.of(member.member_id, member.client_id, member.client_host)
            for row in member.assignment.topic_partitions:
                assigned[row.topic_name].update(dict.fromkeys(row.partitions, owner))
        if not group.error_code:
            members[group.group_id] = len(group.members), dict(assigned)
    return members


def members_of_streams(connection: Connection, node: Node, groups: list[str]) -> Members:
    return of_descriptions(by_streams_protocol(connection, node, groups))


MEMBERS: Final[Mapping[str, Callable[[Connection, Node, list[str]], Members]]] = {
    CLASSIC: members_of_classic,
    CONSUMER: members_of_consumer,
    SHARE: members_of_share,
    STREAMS: members_of_streams,
}
"""By type of group, as ListGroups spells it."""
