"""OffsetFetch, OffsetCommit and OffsetDelete, sent by a client that is not a member."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeVar

from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.coordinators import each_group
from odradek.client.errors import RequestFailed, check
from odradek.client.leaders import Partition, by_topic, nothing, outcomes_of, partition_text, topics_of
from odradek.client.resources import Node
from odradek.client.retries import values
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from odradek.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

NAMES_VERSION = 9
"""The last version that identifies topics by name. Ids would miss offsets of deleted topics."""
ALL_VERSION = 2
STABLE_VERSION = 7  # KIP-447
GROUPS_VERSION = 8
"""The first version with several groups."""
GROUPS_AT_ONCE = 100
"""The cheapest for a broker: one after the other takes six times as long, all in one twice as long."""
Value = TypeVar("Value")
Row = OffsetFetchResponsePartition | OffsetFetchResponsePartitions


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The committed offset of a partition."""

    offset: int
    leader_epoch: int | None = None
    """None if it is not known."""
    metadata: str = ""


def asked(kind: Callable[..., Value], partitions: Sequence[Partition] | None) -> list[Value] | None:
    """The topics of a request, in the form of the versions with one group or with several; None for all."""
    if partitions is None:
        return None
    return [kind(name=topic, partition_indexes=rows) for topic, rows in by_topic(partitions).items()]


def offset_fetch(
    cluster: Cluster, group: str, partitions: Sequence[Partition] | None, require_stable: bool
) -> dict[Partition, CommittedOffset]:
    """Fetch the committed offsets; see `AdminClient.offset_fetch`."""
    request = OffsetFetchRequest(
        group_id=group,
        topics=asked(OffsetFetchRequestTopic, partitions),
        groups=[OffsetFetchRequestGroup(group_id=group, topics=asked(OffsetFetchRequestTopics, partitions))],
        require_stable=require_stable,
    )

    def ask(connection: Connection) -> dict[Partition, CommittedOffset]:
        response: OffsetFetchResponse = connection.send(
            request, STABLE_VERSION if require_stable else ALL_VERSION, NAMES_VERSION
        )
        return committed(response, group)

    return at_coordinator(cluster, group, ask)


Committed = dict[Partition, CommittedOffset]


def offset_fetch_of_each(cluster: Cluster, groups: Iterable[str]) -> dict[str, Committed | RequestFailed]:
    """Fetch all offsets of many groups; see `AdminClient.offset_fetch_of_each`."""

    def ask(connection: Connection, _node: Node, mine: list[str]) -> dict[str, Committed | RequestFailed]:
        return {row.group_id: outcome_of(row) for row in offset_rows(connection, mine)}

    return each_group(cluster, groups, ask)


def offset_rows(connection: Connection, groups: Sequence[str]) -> Iterator[OffsetFetchResponseGroup]:
    """What a coordinator says of all offsets of groups, asked for a hundred groups at once.

    Raises:
        ClientError: The broker does not answer.
    """
    if connection.version(OffsetFetchRequest(), ALL_VERSION, NAMES_VERSION) < GROUPS_VERSION:
        for group in groups:
            yield answered_alone(connection, group)
        return
    for some in portions(groups):
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=each, topics=None) for each in some]
        )
        response: OffsetFetchResponse = connection.send(request, GROUPS_VERSION, NAMES_VERSION)
        yield from response.groups


def answered_alone(connection: Connection, group: str) -> OffsetFetchResponseGroup:
    """The answer of a broker that takes only one group in a request."""
    request = OffsetFetchRequest(group_id=group, topics=None)
    response: OffsetFetchResponse = connection.send(request, ALL_VERSION, GROUPS_VERSION - 1)
    topics: list[Any] = list(response.topics)
    return OffsetFetchResponseGroup(group_id=group, topics=topics, error_code=response.error_code)


def portions(groups: Iterable[str]) -> Iterator[list[str]]:
    """The groups of each request."""
    left = iter(groups)
    while some := list(islice(left, GROUPS_AT_ONCE)):
        yield some


def outcome_of(row: OffsetFetchResponseGroup) -> Committed | RequestFailed:
    """The offsets of one group in a response for many."""
    try:
        check(row.error_code, subject=row.group_id)
        return offsets_in(row.topics)
    except RequestFailed as error:
        return error


def committed(response: OffsetFetchResponse, group: str) -> Committed:
    """The offsets in a response of either form.

    Raises:
        RequestFailed: The broker refused the group or one of the partitions.
    """
    check(response.error_code, subject=group)
    topics: list[OffsetFetchResponseTopic | OffsetFetchResponseTopics] = [*response.topics]
    for found in response.groups:
        check(found.error_code, subject=group)
        topics.extend(found.topics)
    return offsets_in(topics)


def offsets_in(topics: Iterable[OffsetFetchResponseTopic | OffsetFetchResponseTopics]) -> Committed:
    """The offsets of one group.

    Raises:
        RequestFailed: The broker refused one of the partitions.
    """
    offsets: Committed = {}
    for topic in topics:
        rows: Iterable[Row] = chain(topic.partitions)
        for row in rows:
            check(row.error_code, subject=partition_text((topic.name, row.partition_index)))
            if row.committed_offset >= 0:
                offsets[topic.name, row.partition_index] = offset(row)
    return offsets


def offset(row: Row) -> CommittedOffset:
    """Convert the offset of one partition from the wire."""
    epoch = row.committed_leader_epoch
    return CommittedOffset(row.committed_offset, epoch if epoch >= 0 else None, row.metadata or "")


def offset_commit(
    cluster: Cluster, group: str, new: Mapping[Partition, CommittedOffset], partitions: Iterable[Partition]
) -> dict[Partition, RequestFailed | None]:
    """Commit the offsets of ``partitions``; return the result of each. See `AdminClient.offset_commit`."""
    topics = topics_of(OffsetCommitRequestTopic, partitions, lambda at: commit(at[1], new[at]))
    request = OffsetCommitRequest(group_id=group, topics=topics)

    def ask(connection: Connection) -> dict[Partition, RequestFailed | None]:
        response: OffsetCommitResponse = connection.send(request, most_version=NAMES_VERSION)
        return outcomes_of(response.topics, nothing)

    return at_coordinator(cluster, group, ask)


def commit(index: int, new: CommittedOffset) -> OffsetCommitRequestPartition:
    """The offset of one partition as a message."""
    return OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=new.offset,
        committed_leader_epoch=-1 if new.leader_epoch is None else new.leader_epoch,
        committed_metadata=new.metadata,
    )


def offset_delete(
    cluster: Cluster, group: str, partitions: Iterable[Partition]
) -> dict[Partition, RequestFailed | None]:
    """Delete offsets and return the result of each partition; see `AdminClient.offset_delete`."""
    topics = topics_of(
        OffsetDeleteRequestTopic,
        partitions,
        lambda at: OffsetDeleteRequestPartition(partition_index=at[1]),
    )
    request = OffsetDeleteRequest(group_id=group, topics=topics)

    def ask(connection: Connection) -> dict[Partition, RequestFailed | None]:
        response: OffsetDeleteResponse = connection.send(request)
        check(response.error_code, subject=group)
        return outcomes_of(response.topics, nothing)

    return at_coordinator(cluster, group, ask)


def at_coordinator(cluster: Cluster, group: str, ask: Callable[[Connection], Value]) -> Value:
    """Send a request to the group's coordinator and return its answer."""

    def once(connection: Connection, _node: Node, _groups: list[str]) -> dict[str, Value | RequestFailed]:
        return {group: ask(connection)}

    return values(each_group(cluster, [group], once))[group]
