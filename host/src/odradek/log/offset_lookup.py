"""Lookup of offsets by timestamp, for ListOffsets.

After org.apache.kafka.storage.internals.log.UnifiedLog.fetchOffsetByTimestamp: the indexes find the batch,
which is then opened to find the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from odradek.log.segment import Located, Segment
from odradek.wire.errors import WireError
from odradek.wire.record_batch import RecordBatchHeader, TimestampType, records

MAX_OPENED: Final = 8
"""The most batches that one lookup opens. The header of a batch that was not opened on append may claim a
later timestamp than its records have. After this many, the first offset of the next batch is a good enough
answer.
"""


class TimestampOffset(NamedTuple):
    """A record's timestamp, and its offset."""

    timestamp_ms: int
    offset: int


def first_at_or_after(
    segments: Sequence[Segment], timestamp_ms: int, start_offset: int = 0
) -> TimestampOffset | None:
    """The first record from ``start_offset`` on with a timestamp of ``timestamp_ms`` or later."""
    located = (
        (segment, found)
        for segment in segments
        if segment.max_timestamp_ms >= timestamp_ms
        for found in segment.locate_time(timestamp_ms, start_offset)
    )
    for segment, found in islice(located, MAX_OPENED):
        record = _record_in(segment, found, timestamp_ms, start_offset)
        if record is not None:
            return record
    return next((_first_in(header, start_offset) for _, (_, header) in located), None)


def first_with_max_timestamp(segments: Sequence[Segment]) -> TimestampOffset | None:
    """The first record with the greatest timestamp; None if there is no batch."""
    segment = max((each for each in segments if each.size_bytes), key=_max_timestamp_ms, default=None)
    if segment is None:
        return None
    found = segment.locate(segment.index.offset_of_max_timestamp)
    if found is None:
        return None
    timestamp_ms = _max_timestamp_ms(segment)
    return _record_in(segment, found, timestamp_ms) or TimestampOffset(timestamp_ms, found[1].last_offset)


def _max_timestamp_ms(segment: Segment) -> int:
    return segment.max_timestamp_ms


def _record_in(
    segment: Segment, found: Located, timestamp_ms: int, start_offset: int = 0
) -> TimestampOffset | None:
    """The first match in a batch; None if no record from ``start_offset`` on is late enough."""
    _, header = found
    if header.timestamp_type is TimestampType.CREATE_TIME:
        try:
            for record in records(segment.read_batch(found), header):
                if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                    return TimestampOffset(record.timestamp_ms, record.offset)
        except WireError:
            pass  # a batch that was never opened may be malformed: its first offset is the best answer
        else:
            return None
    return _first_in(header, start_offset)


def _first_in(header: RecordBatchHeader, start_offset: int) -> TimestampOffset:
    return TimestampOffset(header.max_timestamp_ms, max(header.base_offset, start_offset))
