"""ListOffsets: each partition's leader is asked, one request per leader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from odradek.client.cluster import Cluster
from odradek.client.errors import RequestFailed, check
from odradek.client.resources import MAX_TIMESTAMP, Offset
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.wire.messages.metadata import MetadataResponse

CONSUMER = -1
"""The replica id of everybody who is no broker."""
MAX_TIMESTAMP_VERSION = 7  # KIP-734

Partition = tuple[str, int]


def offsets_of(cluster: Cluster, partitions: Mapping[Partition, int]) -> dict[Partition, Offset]:
    """Offsets by topic and partition; see `AdminClient.list_offsets`."""
    metadata = cluster.metadata(sorted({topic for topic, _ in partitions}))
    least_version = MAX_TIMESTAMP_VERSION if MAX_TIMESTAMP in partitions.values() else 1
    found: dict[Partition, Offset] = {}
    for leader, group in by_leader(metadata, partitions).items():
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            topics=[question(topic, indexes, partitions) for topic, indexes in group.items()],
        )
        response: ListOffsetsResponse = cluster.node(leader, metadata).send(request, least_version)
        for topic in response.topics:
            for row in topic.partitions:
                check(row.error_code, subject=f"{topic.name}-{row.partition_index}")
                found[topic.name, row.partition_index] = Offset(row.offset, row.timestamp)
    return found


def by_leader(metadata: MetadataResponse, partitions: Iterable[Partition]) -> dict[int, dict[str, list[int]]]:
    """Leader, topic, partitions.

    Raises:
        RequestFailed: A topic or partition does not exist, or has no leader.
    """
    leaders: dict[Partition, int] = {}
    for topic in metadata.topics:
        check(topic.error_code, subject=topic.name)
        for row in topic.partitions:
            leaders[topic.name or "", row.partition_index] = row.leader_id
    groups: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name, index in partitions:
        leader = leaders.get((name, index))
        if leader is None:
            raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, subject=f"{name}-{index}")
        if leader < 0:
            raise RequestFailed(ErrorCode.LEADER_NOT_AVAILABLE, subject=f"{name}-{index}")
        groups[leader][name].append(index)
    return groups


def question(topic: str, indexes: Iterable[int], timestamps: Mapping[Partition, int]) -> ListOffsetsTopic:
    """What to ask about one topic."""
    return ListOffsetsTopic(
        name=topic,
        partitions=[
            ListOffsetsPartition(partition_index=index, timestamp=timestamps[topic, index])
            for index in indexes
        ],
    )
