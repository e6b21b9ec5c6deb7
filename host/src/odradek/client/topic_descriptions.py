"""Descriptions of topics, from DescribeTopicPartitions (KIP-966) in pages, or from Metadata before 3.8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import ConnectFailed, UnsupportedVersion, check
from odradek.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from odradek.wire.messages.metadata import MetadataResponsePartition
from odradek.wire.types import NIL_UUID

PARTITIONS_PER_PAGE = 2000
"""Kafka's default of ``max.request.partition.size.limit``, which limits a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """One partition."""

    index: int
    leader: int | None
    replicas: Sequence[int]
    in_sync: Sequence[int]
    eligible_leader_replicas: Sequence[int] | None = None
    """None if the broker does not say."""
    last_known_eligible: Sequence[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """One topic."""

    name: str
    topic_id: bytes
    """`NIL_UUID` from brokers before 2.8."""
    is_internal: bool
    partitions: Sequence[PartitionDescription]
    """In the order of their indexes."""


def describe_topics(
    cluster: Cluster, names: Sequence[str], page: int = PARTITIONS_PER_PAGE
) -> list[TopicDescription]:
    """Describe topics, in the order of ``names``.

    Args:
        cluster: The brokers.
        names: Names of the topics.
        page: The maximum number of partitions per request.

    Raises:
        RequestFailed: A topic does not exist.
    """
    if not names:
        return []
    connection = cluster.any()
    try:
        connection.version(DescribeTopicPartitionsRequest())
    except UnsupportedVersion:
        return by_metadata(cluster, names)
    described = joined(pages(connection, sorted(names), page))
    return [described[name] for name in names]


def pages(
    connection: Connection, names: Sequence[str], page: int
) -> Iterator[DescribeTopicPartitionsResponseTopic]:
    """Yield topics page by page. A topic that does not fit on a page comes in several pieces."""
    cursor: Cursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names], response_partition_limit=page, cursor=cursor
        )
        response: DescribeTopicPartitionsResponse = connection.send(request)
        yield from response.topics
        if response.next_cursor is None:
            return
        if cursor is not None and place(response.next_cursor) <= place(cursor):
            raise ConnectFailed(
                f"{connection.address}: DescribeTopicPartitions returned a cursor that does not advance"
            )
        cursor = response.next_cursor
        names = [name for name in names if name >= place(response.next_cursor)[0]]


def place(cursor: Cursor) -> tuple[str, int]:
    """The position of a cursor, for comparison."""
    return cursor.topic_name, cursor.partition_index


def joined(pieces: Iterable[DescribeTopicPartitionsResponseTopic]) -> dict[str, TopicDescription]:
    """Join the pieces into topics by name."""
    found: dict[str, TopicDescription] = {}
    for piece in pieces:
        name = piece.name or ""
        check(piece.error_code, subject=name)
        before = found[name].partitions if name in found else ()
        found[name] = TopicDescription(
            name=name,
            topic_id=piece.topic_id,
            is_internal=piece.is_internal,
            partitions=[*before, *map(partition, piece.partitions)],
        )
    return found


def by_metadata(cluster: Cluster, names: Sequence[str]) -> list[TopicDescription]:
    """Describe topics at a broker that has no DescribeTopicPartitions."""
    described: dict[str | None, TopicDescription] = {}
    for topic in cluster.metadata(list(names)).topics:
        check(topic.error_code, subject=topic.name)
        described[topic.name] = TopicDescription(
            name=topic.name or "",
            topic_id=topic.topic_id or NIL_UUID,
            is_internal=topic.is_internal,
            partitions=sorted(map(partition, topic.partitions), key=lambda row: row.index),
        )
    return [described[name] for name in names]


def partition(
    row: MetadataResponsePartition | DescribeTopicPartitionsResponsePartition,
) -> PartitionDescription:
    """Convert a partition. Metadata does not tell which replicas are eligible; null is an empty list."""
    found = PartitionDescription(
        index=row.partition_index,
        leader=row.leader_id if row.leader_id >= 0 else None,
        replicas=row.replica_nodes,
        in_sync=row.isr_nodes,
    )
    if isinstance(row, MetadataResponsePartition):
        return found
    eligible, last_known = row.eligible_leader_replicas or (), row.last_known_elr or ()
    return replace(found, eligible_leader_replicas=eligible, last_known_eligible=last_known)
