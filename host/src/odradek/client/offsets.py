"""ListOffsets and DeleteRecords, sent to the leaders of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import RequestFailed
from odradek.client.leaders import Partition, each_leader, leaders, outcomes_of, topics_of
from odradek.client.resources import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    Offset,
)
from odradek.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

CONSUMER = -1
"""The replica id of a client that is not a broker."""
LEAST_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The version that introduced a special timestamp (KIP-734, KIP-405, KIP-1005, KIP-1023)."""


def list_offsets(
    cluster: Cluster, timestamps: Mapping[Partition, int], partitions: Iterable[Partition]
) -> dict[Partition, Offset | RequestFailed]:
    """List the offsets of ``partitions`` at their timestamps; see `AdminClient.list_offsets`."""

    def ask(leader: Connection, group: list[Partition]) -> dict[Partition, Offset | RequestFailed]:
        least_version = max(LEAST_VERSION.get(timestamps[each], 1) for each in group)
        topics = topics_of(
            ListOffsetsTopic,
            group,
            lambda at: ListOffsetsPartition(partition_index=at[1], timestamp=timestamps[at]),
        )
        request = ListOffsetsRequest(replica_id=CONSUMER, topics=topics)
        response: ListOffsetsResponse = leader.send(request, least_version)
        return outcomes_of(response.topics, lambda row: Offset(row.offset, row.timestamp))

    return each_leader(cluster, partitions, ask)


def led(cluster: Cluster, partitions: Iterable[Partition]) -> list[Partition]:
    """The partitions among these that exist and have a leader."""
    wanted = list(partitions)
    metadata = cluster.metadata(sorted({topic for topic, _ in wanted}))
    return [partition for partition, leader in leaders(metadata, wanted).items() if isinstance(leader, int)]


def delete_records(
    cluster: Cluster, before: Mapping[Partition, int], partitions: Iterable[Partition], timeout_ms: int
) -> dict[Partition, int | RequestFailed]:
    """Delete records of ``partitions`` and return the new first offsets; see `AdminClient.delete_records`."""

    def ask(leader: Connection, group: list[Partition]) -> dict[Partition, int | RequestFailed]:
        topics = topics_of(
            DeleteRecordsTopic,
            group,
            lambda at: DeleteRecordsPartition(partition_index=at[1], offset=before[at]),
        )
        request = DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)
        response: DeleteRecordsResponse = leader.send(request)
        return outcomes_of(response.topics, lambda row: int(row.low_watermark))

    return each_leader(cluster, partitions, ask)
