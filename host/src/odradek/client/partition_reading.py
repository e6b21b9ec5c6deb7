"""What one leader says of its partitions: their offsets, and the time and kind of the record at an offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from odradek.client.connection import Connection
from odradek.client.errors import RequestFailed, UnsupportedVersion, check
from odradek.client.fetch import NAMES_UP_TO
from odradek.client.leaders import Partition, outcomes_of, partition_text, topics_of
from odradek.client.offsets import CONSUMER
from odradek.client.resources import EARLIEST, LATEST, Offset
from odradek.lag.time_search import TimeSearch
from odradek.waiting.clock import Clock
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.wire.record_batch import HEADER_BYTES, MAGIC, RecordBatchHeader, parse_header

PARTITIONS_A_REQUEST: Final = 5_000
"""An answer of some 150 kB."""
ISOLATION_VERSION: Final = 2
HEADS_BYTES: Final = 4_096
"""Read at once. A batch that is larger comes whole."""
MOST_FETCHES: Final = 20
"""For one record."""

Found = dict[Partition, Offset | RequestFailed]


def list_offsets(
    connection: Connection, timestamps: Mapping[Partition, int], *, committed_only: bool = False
) -> Found:
    """The offset and the timestamp of each partition at a time, or at a special timestamp of ListOffsets.

    Raises:
        ClientError: The leader does not answer, or does not know isolation levels.
    """
    found: Found = {}
    wanted = iter(timestamps)
    while some := list(islice(wanted, PARTITIONS_A_REQUEST)):
        topics = topics_of(
            ListOffsetsTopic,
            some,
            lambda at: ListOffsetsPartition(partition_index=at[1], timestamp=timestamps[at]),
        )
        request = ListOffsetsRequest(replica_id=CONSUMER, isolation_level=committed_only, topics=topics)
        response: ListOffsetsResponse = connection.send(request, ISOLATION_VERSION if committed_only else 1)
        found |= outcomes_of(response.topics, lambda row: Offset(row.offset, row.timestamp))
    return found


class LeaderEnds(NamedTuple):
    """The offsets of the partitions of one leader."""

    high_watermarks: Found
    sent_ms: int
    """When they were asked for, on the monotonic clock."""
    received_ms: int
    stable: Found
    """Last stable offsets; empty if not asked for, or if the leader does not know them."""
    starts: Found
    """Log start offsets; empty if not asked for."""


def read_ends(
    connection: Connection, partitions: Iterable[Partition], clock: Clock, *, whole: bool
) -> LeaderEnds:
    """Ask a leader for the ends of its partitions.

    Args:
        connection: To the leader.
        partitions: Those that it leads.
        clock: The time.
        whole: Ask for log start and last stable offsets too, one before and the other after the end.
    """
    latest = dict.fromkeys(partitions, LATEST)
    starts = list_offsets(connection, dict.fromkeys(latest, EARLIEST)) if whole else {}
    sent_ms = clock.monotonic_ms()
    ends = list_offsets(connection, latest)
    received_ms = clock.monotonic_ms()
    stable: Found = {}
    if whole:
        with suppress(UnsupportedVersion):
            stable = list_offsets(connection, latest, committed_only=True)
    return LeaderEnds(ends, sent_ms, received_ms, stable, starts)


def stamps(
    connection: Connection, wanted: Sequence[tuple[Partition, int]], now_ms: int
) -> dict[tuple[Partition, int], int]:
    """The timestamps of the records at offsets, epoch milliseconds; see `TimeSearch`.

    A record without one, or whose partition cannot be asked for, is left out. Each request has one offset of
    a partition.
    """
    left = [(key, TimeSearch(key[1], now_ms)) for key in wanted]
    found: dict[tuple[Partition, int], int] = {}
    while left:
        asked: dict[Partition, tuple[tuple[Partition, int], TimeSearch]] = {}
        for key, search in left:
            asked.setdefault(key[0], (key, search))
        times_ms = {at: search.asks_ms or 0 for at, (_, search) in asked.items()}
        answers = list_offsets(connection, times_ms)
        over = set()
        for at, (key, search) in asked.items():
            answer = answers.get(at)
            if not isinstance(answer, Offset):
                over.add(key)
                continue
            search.answered(answer.offset, answer.timestamp_ms)
            if search.asks_ms is None:
                over.add(key)
                if search.found_ms is not None:
                    found[key] = search.found_ms
        left = [each for each in left if each[0] not in over]
    return found


def first_batches(
    connection: Connection, wanted: Iterable[tuple[Partition, int, int]]
) -> dict[tuple[Partition, int], RecordBatchHeader | RequestFailed | None]:
    """What `first_batch` finds at partitions and offsets up to an end, or why they cannot be read."""
    found: dict[tuple[Partition, int], RecordBatchHeader | RequestFailed | None] = {}
    for partition, offset, end in wanted:
        try:
            found[partition, offset] = first_batch(connection, partition, offset, end)
        except RequestFailed as error:
            found[partition, offset] = RequestFailed(error.code, error.message, error.subject)
    return found


def first_batch(
    connection: Connection, partition: Partition, offset: int, end: int
) -> RecordBatchHeader | None:
    """The head of the first batch with records of producers from an offset on; None if there are only markers
    up to the end.

    Raises:
        RequestFailed: The partition cannot be read from there.
        ClientError: The leader does not answer.
    """
    for _ in range(MOST_FETCHES):
        if offset >= end:
            return None
        for header in heads(fetched(connection, partition, offset)):
            if header.last_offset >= offset:
                offset = header.next_offset
                if header.record_count and not header.is_control:
                    return header
    raise RequestFailed(ErrorCode.REQUEST_TIMED_OUT, subject=partition_text(partition))


def fetched(connection: Connection, partition: Partition, offset: int) -> bytes:
    """The first bytes of the batch that has an offset, or is the first after it."""
    topic, index = partition
    wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=HEADS_BYTES)
    request = FetchRequest(max_bytes=HEADS_BYTES, topics=[FetchTopic(topic=topic, partitions=[wanted])])
    response: FetchResponse = connection.send(request, most_version=NAMES_UP_TO)
    check(response.error_code, subject="Fetch")
    (row,) = [row for each in response.responses for row in each.partitions]
    check(row.error_code, subject=partition_text(partition))
    return bytes(row.records or b"")


def heads(data: bytes) -> Iterator[RecordBatchHeader]:
    """The heads of the batches, also of one that is cut. Older formats end them."""
    position = 0
    while len(data) - position >= HEADER_BYTES:
        header = parse_header(data, position)
        if header.magic != MAGIC or header.size_bytes < HEADER_BYTES:
            return
        yield header
        position += header.size_bytes
