"""Fetch: the records of partitions, from given offsets on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import ClientError, RequestFailed, check, failure
from odradek.client.leaders import Partition, by_topic, each_leader, partition_text
from odradek.client.retries import is_temporary
from odradek.wire.errors import WireError
from odradek.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from odradek.wire.messages.metadata import MetadataResponse
from odradek.wire.record import Record
from odradek.wire.record_batch import RecordBatchHeader, record_batches, records

MAX_BYTES = 4 << 20
MAX_WAIT_MS = 500
NAMES_UP_TO = 12
"""The last version in which a topic is identified by its name rather than its id."""
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class Received(NamedTuple):
    """A record with the partition and the batch that contain it."""

    partition: Partition
    batch: RecordBatchHeader
    record: Record


class Reader:
    """Reads partitions from given offsets on.

    Args:
        cluster: The brokers.
        positions: The offset of the first record wanted, by partition. It must still be in the log.
        committed_only: Whether to leave out records of open and aborted transactions.
        max_bytes: Limit of one response, and of one partition in it; a larger batch comes alone.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[Partition, int],
        *,
        committed_only: bool = False,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.cluster = cluster
        self.positions = dict(positions)
        """The offset after the last record that `poll` yielded, by partition. The partition read last is the
        last one, so that a broker that fills its responses in this order serves all."""
        self.committed_only = committed_only
        self.max_bytes = max_bytes
        self.refusal: RequestFailed | None = None
        """A temporary refusal of the latest `poll`."""

    def poll(self, wait_ms: int = MAX_WAIT_MS) -> Iterator[Received]:
        """Send one request to each leader and yield the records in the responses.

        Args:
            wait_ms: How long each leader waits if it has no records.

        Raises:
            ClientError: While iterating: a partition does not exist, cannot be read, or has lost its offset.
        """
        self.refusal = None
        for partition, outcome in self.responses(wait_ms).items():
            if not isinstance(outcome, RequestFailed):
                yield from self.received(partition, outcome)
            elif is_temporary(outcome):
                self.refusal = outcome
            else:
                raise outcome

    def responses(
        self, wait_ms: int, metadata: MetadataResponse | None = None
    ) -> dict[Partition, PartitionData | RequestFailed]:
        """Send one request to each leader and return the response for each partition."""
        return each_leader(
            self.cluster, self.positions, lambda leader, group: self.fetched(leader, group, wait_ms), metadata
        )

    def fetched(
        self, leader: Connection, group: list[Partition], wait_ms: int
    ) -> dict[Partition, PartitionData | RequestFailed]:
        """The response of one leader, by partition."""
        topics = [
            FetchTopic(topic=topic, partitions=[self.wanted(topic, index) for index in indexes])
            for topic, indexes in by_topic(group).items()
        ]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=self.max_bytes,
            isolation_level=READ_COMMITTED if self.committed_only else READ_UNCOMMITTED,
            topics=topics,
        )
        response: FetchResponse = leader.send(request, most_version=NAMES_UP_TO)
        check(response.error_code, subject="Fetch")
        return {
            (topic.topic, row.partition_index): failure(
                row.error_code, subject=partition_text((topic.topic, row.partition_index))
            )
            or row
            for topic in response.responses
            for row in topic.partitions
        }

    def wanted(self, topic: str, index: int) -> FetchPartition:
        """A partition of a request."""
        position = self.positions[topic, index]
        return FetchPartition(partition=index, fetch_offset=position, partition_max_bytes=self.max_bytes)

    def received(self, partition: Partition, row: PartitionData) -> Iterator[Received]:
        """Yield the records of one partition, and move its position past them."""
        data = bytes(row.records or b"")
        if data:
            self.positions[partition] = self.positions.pop(partition)
        aborted = (row.aborted_transactions or ()) if self.committed_only else ()
        try:
            for header, batch in batches(data, aborted):
                for record in records(batch, header) if batch else ():
                    if record.offset >= self.positions[partition]:
                        self.positions[partition] = record.offset + 1
                        yield Received(partition, header, record)
                self.positions[partition] = max(self.positions[partition], header.next_offset)
        except WireError as error:
            raise ClientError(f"{partition_text(partition)}: unreadable records: {error}") from error


def batches(
    data: bytes, aborted: Iterable[AbortedTransaction]
) -> Iterator[tuple[RecordBatchHeader, memoryview | None]]:
    """Yield the batches of a response: the header, and the batch or None if it has no records for a consumer.

    A transaction of a producer is aborted from its first offset up to the producer's next marker.
    """
    waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    aborting: set[int] = set()
    for header, batch in record_batches(data):
        while waiting and waiting[-1].first_offset <= header.last_offset:
            aborting.add(waiting.pop().producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
        is_aborted = header.is_transactional and header.producer_id in aborting
        yield header, None if header.is_control or is_aborted else batch


def fetch(cluster: Cluster, partition: Partition, start: int, end: int) -> Iterator[Record]:
    """Yield the records of a partition from ``start`` up to ``end``, including those of aborted transactions.

    Args:
        cluster: The brokers.
        partition: Topic and index.
        start: The first offset wanted; it must still be in the log.
        end: The offset after the last one wanted, such as the high watermark.

    Raises:
        ClientError: While iterating: the partition does not exist, cannot be read, or has lost ``start``.
    """
    reader = Reader(cluster, {partition: start})
    while (position := reader.positions[partition]) < end:
        for received in reader.poll():
            if received.record.offset < end:
                yield received.record
        if reader.positions[partition] == position:
            if reader.refusal is not None:
                raise reader.refusal
            return
