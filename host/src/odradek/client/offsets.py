"""ListOffsets and DeleteRecords, sent to the leaders of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import RequestFailed, failure
from odradek.client.leaders import Partition, by_topic, each_leader, leaders, partition_text
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
        request = ListOffsetsRequest(replica_id=CONSUMER, topics=questions(group, timestamps))
        response: ListOffsetsResponse = leader.send(request, least_version)
        return {
            (topic.name, row.partition_index): failure(
                row.error_code, subject=partition_text((topic.name, row.partition_index))
            )
            or Offset(row.offset, row.timestamp)
            for topic in response.topics
            for row in topic.partitions
        }

    return each_leader(cluster, partitions, ask)


def questions(group: Iterable[Partition], timestamps: Mapping[Partition, int]) -> list[ListOffsetsTopic]:
    """The partitions of a request, with their timestamps."""
    return [
        ListOffsetsTopic(
            name=topic,
            partitions=[
                ListOffsetsPartition(partition_index=index, timestamp=timestamps[topic, index])
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(group).items()
    ]


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
        topics = [
            DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=before[topic, index])
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(group).items()
        ]
        response: DeleteRecordsResponse = leader.send(
            DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)
        )
        outcomes: dict[Partition, int | RequestFailed] = {}
        for topic in response.topics:
            for row in topic.partitions:
                partition = topic.name, row.partition_index
                error = failure(row.error_code, subject=partition_text(partition))
                outcomes[partition] = row.low_watermark if error is None else error
        return outcomes

    return each_leader(cluster, partitions, ask)
