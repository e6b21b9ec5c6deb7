"""Choice of the log to compact next.

After org.apache.kafka.storage.internals.log.{LogCleanerManager,LogToClean} (Kafka 4.3). A log is due when its
share of bytes that were never compacted is large enough, or when a record has waited for longer than
``max.compaction.lag.ms``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from odradek.log.partition_log import PartitionLog
from odradek.log.segment import Segment
from odradek.wire.limits import INT32_MAX


class Cleanable(NamedTuple):
    """The part of a log that could be compacted now."""

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool

    @property
    def ratio(self) -> float:
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        if not self.dirty_bytes or not self.log.config.is_compacted:
            return False
        return self.overdue or self.ratio > self.log.config.min_cleanable_dirty_ratio


def cleanable(log: PartitionLog, now_ms: int) -> Cleanable:
    """The part of ``log`` that could be compacted now: neither the newest segment nor an open transaction."""
    segments = log.segments
    dirty_from = log.first_dirty_offset
    # DeleteRecords may have passed the checkpoint, or a crash may have cut the log before it: start over.
    if not log.log_start_offset <= dirty_from <= segments[-1].base_offset:
        dirty_from = log.log_start_offset
    uncleanable = _first_uncleanable_offset(log, dirty_from, now_ms)
    clean_bytes = dirty_bytes = 0
    dirty: list[Segment] = []
    for segment, following in pairwise(segments):
        if following.base_offset <= dirty_from:
            clean_bytes += segment.size_bytes
        elif segment.base_offset < uncleanable:
            dirty_bytes += segment.size_bytes
            dirty.append(segment)
    overdue = _is_overdue(dirty, now_ms - log.config.max_compaction_lag_ms)
    return Cleanable(log, dirty_from, max(uncleanable, dirty_from), clean_bytes, dirty_bytes, overdue)


def _first_uncleanable_offset(log: PartitionLog, dirty_from: int, now_ms: int) -> int:
    """The first offset that must not be compacted; a segment's base, so that a round covers whole
    segments.
    """
    segments, lag_ms = log.segments, log.config.min_compaction_lag_ms
    for segment, following in pairwise(segments):
        if following.base_offset <= dirty_from:
            continue
        if following.base_offset > log.last_stable_offset:
            return segment.base_offset  # holds records that may still be aborted
        if lag_ms > 0 and segment.largest_timestamp_ms > now_ms - lag_ms:
            return segment.base_offset
    return segments[-1].base_offset


def _is_overdue(dirty: Iterable[Segment], latest_ms: int) -> bool:
    if latest_ms <= 0:
        return False
    first_ms = (segment.first_timestamp_ms for segment in dirty)
    return any(each is not None and 0 < each < latest_ms for each in first_ms)


def filthiest(found: Iterable[Cleanable]) -> Cleanable | None:
    """The due log with the highest dirty ratio; None if no log is due."""
    return max((each for each in found if each.is_due), key=lambda each: each.ratio, default=None)


def groups(segments: Sequence[Segment], end_offset: int, segment_bytes: int) -> list[list[Segment]]:
    """Group neighbors to be merged into one segment: at most ``segment.bytes``, offsets within 2^31.

    Args:
        segments: Consecutive segments in order.
        end_offset: The offset after the last of them.
        segment_bytes: ``segment.bytes``.
    """
    found: list[list[Segment]] = []
    total_bytes = 0
    ends = [*(each.base_offset for each in segments[1:]), end_offset]
    for segment, end in zip(segments, ends, strict=True):
        fits = (
            bool(found)
            and total_bytes + segment.size_bytes <= segment_bytes
            and end - found[-1][0].base_offset <= INT32_MAX
        )
        if fits:
            found[-1].append(segment)
            total_bytes += segment.size_bytes
        else:
            found.append([segment])
            total_bytes = segment.size_bytes
    return found
