"""Which logs want compaction, and how badly.

After org.apache.kafka.storage.internals.log.{LogCleanerManager,LogToClean} (Kafka 4.3): the share of bytes
that were never compacted, or a record that waits for longer than ``max.compaction.lag.ms``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from odradek.log.partition_log import PartitionLog
from odradek.log.segment import Segment

_INT32_MAX: Final = 0x7FFFFFFF


class Cleanable(NamedTuple):
    """What compaction could do to a log now."""

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
    """What could be compacted in ``log``: never the newest segment, nor what a transaction may still undo."""
    segments = log.segments
    dirty_from = log.first_dirty_offset
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
    """Where a segment begins, so that a round ends with whole segments."""
    segments, lag_ms = log.segments, log.config.min_compaction_lag_ms
    for segment, following in pairwise(segments):
        if following.base_offset <= dirty_from:
            continue
        if following.base_offset > log.last_stable_offset:
            return segment.base_offset
        if lag_ms > 0 and segment.largest_timestamp_ms > now_ms - lag_ms:
            return segment.base_offset
    return segments[-1].base_offset


def _is_overdue(dirty: Iterable[Segment], latest_ms: int) -> bool:
    if latest_ms <= 0:
        return False
    first_ms = (segment.first_timestamp_ms for segment in dirty)
    return any(each is not None and 0 < each < latest_ms for each in first_ms)


def filthiest(found: Iterable[Cleanable]) -> Cleanable | None:
    """The log that compaction would help most; None if no log wants it."""
    return max((each for each in found if each.is_due), key=lambda each: each.ratio, default=None)


def groups(segments: Sequence[Segment], end_offset: int, segment_bytes: int) -> list[list[Segment]]:
    """Neighbors that become one segment together: no larger than ``segment.bytes``, offsets within 2^31.

    Args:
        segments: In order, without gaps.
        end_offset: Where the last of them ends.
        segment_bytes: Of the configuration.
    """
    found: list[list[Segment]] = []
    total_bytes = 0
    ends = [*(each.base_offset for each in segments[1:]), end_offset]
    for segment, end in zip(segments, ends, strict=True):
        fits = (
            bool(found)
            and total_bytes + segment.size_bytes <= segment_bytes
            and end - found[-1][0].base_offset <= _INT32_MAX
        )
        if fits:
            found[-1].append(segment)
            total_bytes += segment.size_bytes
        else:
            found.append([segment])
            total_bytes = segment.size_bytes
    return found
