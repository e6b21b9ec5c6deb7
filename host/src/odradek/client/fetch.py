"""Fetch: the records of a partition, from one offset to another."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import check
from odradek.client.leaders import Partition, leaders, partition_text
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.wire.record import Record
from odradek.wire.record_batch import record_batches, records

MAX_BYTES = 4 << 20
MAX_WAIT_MS = 500
NAMES_UP_TO = 12
"""The last version in which a topic is identified by its name rather than its id."""


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
    found = leaders(cluster.metadata([partition[0]]), [partition])[partition]
    if not isinstance(found, int):
        raise found
    leader = cluster.node(found)
    while start < end:
        following = start
        for header, batch in record_batches(fetched(leader, partition, start)):
            following = header.next_offset
            if not header.is_control:
                yield from (each for each in records(batch, header) if start <= each.offset < end)
        if following == start:
            return
        start = following


def fetched(leader: Connection, partition: Partition, offset: int) -> bytes:
    """Fetch batches, starting with the one that contains ``offset``."""
    topic, index = partition
    wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=MAX_BYTES)
    request = FetchRequest(
        max_wait_ms=MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=MAX_BYTES,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    response: FetchResponse = leader.send(request, most_version=NAMES_UP_TO)
    check(response.error_code, subject="Fetch")
    (row,) = response.responses[0].partitions
    check(row.error_code, subject=partition_text(partition))
    return bytes(row.records or b"")
