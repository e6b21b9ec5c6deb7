"""Which segments of a log have expired.

After org.apache.kafka.storage.internals.log.UnifiedLog.deleteOldSegments (Kafka 4.3): whole segments, from
the oldest on, up to the first that must stay. The newest may expire too, unless it is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from odradek.log.log_config import LogConfig
from odradek.log.segment import Segment


def breached_by_start(segments: Sequence[Segment], log_start_offset: int) -> int:
    """How many of the oldest segments are entirely below the log start offset."""
    count = 0
    for _, following in pairwise(segments):
        if following.base_offset > log_start_offset:
            break
        count += 1
    return count


def expired(segments: Sequence[Segment], config: LogConfig, log_start_offset: int, now_ms: int) -> int:
    """How many of the oldest segments have expired: by DeleteRecords, then by size, then by time."""
    count = breached_by_start(segments, log_start_offset)
    if "delete" not in config.cleanup_policy:
        return count
    count += _oversize(segments[count:], config.retention_bytes)
    return count + _overage(segments[count:], config.retention_ms, now_ms)


def _oversize(segments: Sequence[Segment], retention_bytes: int) -> int:
    excess_bytes = sum(segment.size_bytes for segment in segments) - retention_bytes
    if retention_bytes < 0 or excess_bytes < 0:
        return 0

    def fits(segment: Segment) -> bool:
        nonlocal excess_bytes
        excess_bytes -= segment.size_bytes
        return excess_bytes >= 0

    return _count_while(segments, fits)


def _overage(segments: Sequence[Segment], retention_ms: int, now_ms: int) -> int:
    if retention_ms < 0:
        return 0
    # As in Kafka, a timestamp in the future keeps its segment until retention.ms after that time.
    return _count_while(segments, lambda segment: now_ms - segment.largest_timestamp_ms > retention_ms)


def _count_while(segments: Sequence[Segment], goes: Callable[[Segment], bool]) -> int:
    count = 0
    for segment in segments:
        newest = count == len(segments) - 1
        if (newest and not segment.size_bytes) or not goes(segment):
            break
        count += 1
    return count
