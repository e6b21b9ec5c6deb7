"""What a host and a poller of a cluster have in common: ends over time, and what is known of single records.

All times are on the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from odradek.lag.group_lag import GroupLag, Owner, PartitionLag, SeriesCount, TopicEnds, TopicLag
from odradek.lag.offset_times import OffsetTimes
from odradek.lag.readers import Reader, ReaderLag
from odradek.lag.standing import Ends, Standing, standing
from odradek.waiting.steps import Steps
from odradek.wire.record_batch import RecordBatchHeader, TimestampType

Partition = tuple[bytes, int]
"""The id of a topic and the index."""
MARKERS_MOST: Final = 1_000
"""A larger lag is not looked through for records of producers."""
Who = TypeVar("Who", str, Reader)
"""A group by its id, or a client."""
L = TypeVar("L", GroupLag, ReaderLag)


class Measured(NamedTuple, Generic[L]):
    """The lag of a group or a client."""

    lag: L
    moved_ms: int
    """The time of its newest commit or Fetch, epoch milliseconds; 0 without one."""


MeasuredGroup = Measured[GroupLag]
MeasuredReader = Measured[ReaderLag]


class Positions(Protocol[Who, L]):
    """Where the offsets of groups or clients and the ends of partitions come from."""

    outcome: str
    """Of the round: completed, failed, refused."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """What is not measured in this round, by reason."""

    def note_ends(self) -> Steps:
        """Note the ends of the partitions that are read."""

    def begin(self) -> Steps:
        """Begin a round: learn all that it needs."""

    def groups(self) -> Mapping[Who, SeriesCount]:
        """The groups or clients of this round, with the number of their series."""

    def measured(self, group: Who) -> Generator[None, Any, Measured[L] | None]:
        """The lag of a group or client; None if it is gone."""

    def is_empty(self, group: Who) -> bool:
        """Whether a group has no members."""

    def ends(self) -> Iterable[TopicEnds]:
        """The offsets of the topics to tell of."""


class Doubt(Enum):
    """Why the offsets alone do not tell the lag of a reader."""

    AGE = auto()
    """Its first unread record is older than all polls."""
    MARKERS = auto()
    """It stands still so near the end that only markers of transactions may be left."""


class FirstRecord(NamedTuple):
    """The first record of a producer from an offset on, or the batch that has it."""

    offset: int
    stamp_ms: int | None
    """Its timestamp; None without one."""
    stamped: bool
    """The timestamp is that of the append."""


class Lookup(NamedTuple):
    """What was found at an offset."""

    end: int
    """The high watermark at that time."""
    first: FirstRecord | None
    """None if there were only markers."""
    was_read: bool = True
    """False if only its time was asked for: it may be a marker."""


Look = Callable[[Partition, int, int], Lookup | None]
"""Look at an offset, up to an end; None if it cannot be read now."""


class LagMeter:
    """The ends of partitions over time, and what was found at single offsets.

    Args:
        look: Looks at an offset at once.
        now_ms: The monotonic clock.
    """

    def __init__(self, look: Look, now_ms: Callable[[], int]) -> None:
        self.look = look
        self.now_ms = now_ms
        self.tables: dict[Partition, OffsetTimes] = {}
        self.still: dict[tuple[Hashable, Partition], tuple[int, int]] = {}
        """Committed offset and high watermark where there was a lag, of this round."""
        self.still_before: dict[tuple[Hashable, Partition], tuple[int, int]] = {}
        self.lookups: dict[tuple[Partition, int], Lookup] = {}
        """By partition and offset, of this round."""
        self.lookups_before: dict[tuple[Partition, int], Lookup] = {}

    def begin(self) -> None:
        """Begin a round: only what the last one has found is remembered."""
        self.still_before, self.still = self.still, {}
        self.lookups_before, self.lookups = self.lookups, {}

    def note(self, partition: Partition, end: int, sent_ms: int, received_ms: int | None = None) -> None:
        """Note the end of a partition; see `OffsetTimes.note`."""
        table = self.tables.get(partition)
        if table is None:
            table = self.tables[partition] = OffsetTimes()
        table.note(end, sent_ms, received_ms)

    def keep(self, topic_ids: Collection[bytes]) -> None:
        """Forget all other topics."""
        for partition in [each for each in self.tables if each[0] not in topic_ids]:
            del self.tables[partition]

    def doubt(
        self, group: Hashable, partition: Partition, offset: int, ends: Ends, found: Standing
    ) -> Doubt | None:
        """Why a lag must be looked at.

        Markers are looked for only where nothing has moved since the last round: a consumer that is reading
        will commit a later offset anyway.
        """
        is_still = self.still_before.get((group, partition)) == (offset, ends.high_watermark)
        if is_still and found.lag <= MARKERS_MOST:
            return Doubt.MARKERS
        return Doubt.AGE if self.tables[partition].is_older(found.at) else None

    def known(self, partition: Partition, offset: int, end: int) -> Lookup | None:
        """What was found at an offset. A record that was found stays found."""
        key = partition, offset
        found = self.lookups.get(key) or self.lookups_before.get(key)
        if found is None or (found.first is None and found.end != end):
            return None
        self.lookups[key] = found
        return found

    def partition_lag(self, group: Hashable, partition: Partition, offset: int, ends: Ends) -> PartitionLag:
        """The lag of a group or client in a partition whose end is noted."""
        index, found = partition[1], standing(offset, ends)
        if not found.lag:
            return PartitionLag(index, offset, found, 0)
        end = ends.high_watermark
        doubt = self.doubt(group, partition, offset, ends, found)
        self.still[group, partition] = offset, end
        first, stamp_ms, stamped = found.at, None, False
        if doubt is not None:
            lookup = self.known(partition, first, end)
            if lookup is None or (doubt is Doubt.MARKERS and not lookup.was_read):
                lookup = self.look(partition, first, end) or lookup
                if lookup is not None:
                    self.lookups[partition, first] = lookup
            if lookup is not None:
                if lookup.first is None:
                    return PartitionLag(index, offset, standing(offset, ends, only_markers=True), 0)
                first, stamp_ms, stamped = lookup.first
        appended = self.tables[partition].appended(max(first, found.at), stamp_ms, stamped=stamped)
        time_ms = None if appended is None else max(self.now_ms() - appended.time_ms, 0)
        return PartitionLag(index, offset, found, time_ms)


def topic_lag(
    read: Sequence[PartitionLag],
    owners: Mapping[int, Owner],
    offset_age_ms: int,
    retention_ms: int | None = None,
) -> TopicLag:
    """The lag of a group in a topic.

    Args:
        read: The partitions with an offset.
        owners: The members by partition.
        offset_age_ms: The time since an offset moved.
        retention_ms: See `TopicLag.retention_ms`.
    """
    return TopicLag(
        partitions=tuple(sorted(read)),
        uncommitted=len(owners.keys() - {each.partition for each in read}),
        assigned=len(owners),
        offset_age_ms=offset_age_ms if any(each.standing.lag for each in read) else None,
        owners=dict(sorted(owners.items())),
        retention_ms=retention_ms,
    )


def first_record(batch: RecordBatchHeader, to_monotonic_ms: int) -> FirstRecord:
    """The beginning of a batch.

    Args:
        batch: The batch.
        to_monotonic_ms: How far the monotonic clock is ahead of the epoch.
    """
    stamped = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    stamp_ms = batch.max_timestamp_ms if stamped else batch.base_timestamp_ms
    if stamp_ms < 0:
        return FirstRecord(batch.base_offset, None, stamped=False)
    return FirstRecord(batch.base_offset, stamp_ms + to_monotonic_ms, stamped)
