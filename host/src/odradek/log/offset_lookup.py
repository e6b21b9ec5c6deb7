"""Lookup of offsets by timestamp, for ListOffsets.

After org.apache.kafka.storage.internals.log.UnifiedLog.fetchOffsetByTimestamp: the indexes find the batch,
which is then opened to find the record.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from odradek.log.segment import Located, Segment
from odradek.waiting.steps import Step
from odradek.wire.compression import TooLarge, decompress
from odradek.wire.errors import WireError
from odradek.wire.record import parse_records
from odradek.wire.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    MAX_DECOMPRESSED_BYTES,
    RecordBatchHeader,
    TimestampType,
)

MAX_OPENED: Final = 8
"""The most batches that one lookup opens. The header of a batch that was not opened on append may claim a
later timestamp than its records have. After this many, the first offset of the next batch is a good enough
answer.
"""
INLINE_BYTES: Final = 256 * 1024
"""Larger batches are decompressed on another thread."""
RECORDS_A_STEP: Final = 50
"""A tenth of a millisecond."""


class TimestampOffset(NamedTuple):
    """A record's timestamp, and its offset."""

    timestamp_ms: int
    offset: int


TimeLookup = Generator[Step, Any, TimestampOffset | None]
"""A lookup in steps: batches may have a hundred thousand records each."""


def first_at_or_after(segments: Sequence[Segment], timestamp_ms: int, start_offset: int = 0) -> TimeLookup:
    """The first record from ``start_offset`` on with a timestamp of ``timestamp_ms`` or later.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR, also if a segment was deleted between two steps.
    """
    opened = 0
    for segment in segments:
        yield None
        if segment.max_timestamp_ms < timestamp_ms:
            continue
        for found in segment.locate_time(timestamp_ms, start_offset):
            if opened == MAX_OPENED:
                return _first_in(found[1], start_offset)
            opened += 1
            record = yield from _record_in(segment, found, timestamp_ms, start_offset)
            if record is not None:
                return record
    return None


def first_with_max_timestamp(segments: Sequence[Segment]) -> TimeLookup:
    """The first record with the greatest timestamp; None if there is no batch.

    Raises:
        ApiError: As in `first_at_or_after`.
    """
    latest: Segment | None = None
    for segment in segments:
        if segment.size_bytes and (latest is None or segment.max_timestamp_ms > latest.max_timestamp_ms):
            latest = segment
        yield None
    if latest is None:
        return None
    found = latest.locate(latest.index.offset_of_max_timestamp)
    if found is None:
        return None
    timestamp_ms = latest.max_timestamp_ms
    record = yield from _record_in(latest, found, timestamp_ms)
    return record or TimestampOffset(timestamp_ms, found[1].last_offset)


def _record_in(segment: Segment, found: Located, timestamp_ms: int, start_offset: int = 0) -> TimeLookup:
    """The first match in a batch; None if no record from ``start_offset`` on is late enough."""
    _, header = found
    if header.timestamp_type is TimestampType.CREATE_TIME:
        try:
            body = yield from _opened(segment.read_batch(found), header)
            records = parse_records(body, header.record_count, header.base_offset, header.base_timestamp_ms)
            for number, record in enumerate(records, 1):
                if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                    return TimestampOffset(record.timestamp_ms, record.offset)
                if not number % RECORDS_A_STEP:
                    yield None
        except WireError:
            pass  # a batch that was never opened may be malformed: its first offset is the best answer
        else:
            return None
    return _first_in(header, start_offset)


def _opened(batch: bytes, header: RecordBatchHeader) -> Generator[Step, Any, bytes]:
    """The records of a batch, decompressed.

    Raises:
        WireError: They cannot be decompressed.
    """
    codec, body = header.attributes & CODEC_MASK, memoryview(batch)[HEADER_BYTES : header.size_bytes]
    try:
        return decompress(codec, body, max(INLINE_BYTES, len(body)))
    except TooLarge:
        opened: bytes = yield partial(decompress, codec, body, MAX_DECOMPRESSED_BYTES)
        return opened


def _first_in(header: RecordBatchHeader, start_offset: int) -> TimestampOffset:
    return TimestampOffset(header.max_timestamp_ms, max(header.base_offset, start_offset))
