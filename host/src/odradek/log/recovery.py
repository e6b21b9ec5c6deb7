"""What a segment holds after a crash: everything up to the first batch that is not whole.

A process that dies with kill -9 leaves, at worst, one torn batch at the end of the newest segment: all that
was acknowledged is in the page cache. A power failure may leave more damage; the part before it is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from odradek.log.segment import Located, Segment
from odradek.log.segment_index import SegmentIndex
from odradek.wire.record_batch import HEADER_BYTES, MAGIC, RecordBatchHeader, is_intact, parse_header

log = logging.getLogger(__name__)

READ_BYTES = 1 << 20


def recover(segment: Segment, interval_bytes: int, *, contiguous: bool) -> int:
    """Check every batch, cut the rest, build the index anew.

    Args:
        segment: Its ``size_bytes`` is that of the file.
        interval_bytes: ``index.interval.bytes``.
        contiguous: Whether each batch must follow the one before without a gap, as in all segments but
            compacted ones.

    Returns:
        The offset behind the last batch that is left.
    """
    index = SegmentIndex(segment.base_offset, interval_bytes)
    end, next_offset = 0, segment.base_offset
    for position, header in intact_batches(segment, 0, segment.base_offset, contiguous=contiguous):
        index.note(position, header.size_bytes, header.last_offset, header.max_timestamp_ms)
        end, next_offset = position + header.size_bytes, header.next_offset
    segment.index = index
    cut(segment, end)
    return next_offset


def resume(segment: Segment, index: SegmentIndex) -> int:
    """The same for a segment that was closed properly: only what the last index entry covers."""
    last = index.offsets.last
    position = last[1] if last else 0
    end, next_offset = position, segment.base_offset
    for start, header in intact_batches(segment, position, segment.base_offset, contiguous=False):
        end, next_offset = start + header.size_bytes, header.next_offset
    segment.index = index
    if end == position and position:
        return recover(segment, index.interval_bytes, contiguous=True)
    cut(segment, end)
    return next_offset


def cut(segment: Segment, end: int) -> None:
    if end == segment.size_bytes:
        return
    log.warning(
        "cutting a torn tail",
        extra={"segment": str(segment.path), "kept": end, "cut": segment.size_bytes - end},
    )
    segment.truncate(end)


def intact_batches(
    segment: Segment, position: int, next_offset: int, *, contiguous: bool
) -> Iterator[Located]:
    """The batches from ``position`` on, up to the first that is not whole or not in its place."""
    window, start = memoryview(b""), position
    while segment.size_bytes - position >= HEADER_BYTES:
        at = position - start
        if len(window) - at < HEADER_BYTES:
            window, start, at = memoryview(segment.pread(READ_BYTES, position)), position, 0
        if len(window) < HEADER_BYTES:
            return
        header = parse_header(window, at)
        if not _is_plausible(header, next_offset, segment.size_bytes - position, contiguous):
            return
        if len(window) - at < header.size_bytes:
            length = max(READ_BYTES, header.size_bytes)
            window, start, at = memoryview(segment.pread(length, position)), position, 0
        if not is_intact(window[at : at + header.size_bytes], header):
            return
        yield position, header
        position += header.size_bytes
        next_offset = header.next_offset


def _is_plausible(header: RecordBatchHeader, next_offset: int, left_bytes: int, contiguous: bool) -> bool:
    gap = header.base_offset - next_offset
    return (
        header.magic == MAGIC
        and HEADER_BYTES <= header.size_bytes <= left_bytes
        and header.last_offset_delta >= 0
        and (gap == 0 if contiguous else gap >= 0)
    )
