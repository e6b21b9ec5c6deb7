"""Recovery of a segment after a crash: it keeps everything up to the first batch that is not intact.

After kill -9 there is at worst one partial batch at the end of the newest segment, as all acknowledged
batches are in the page cache. A power failure may damage more; everything before the damage is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from crc32c import crc32c

from odradek.log.segment import Located, Segment
from odradek.log.segment_index import SegmentIndex
from odradek.wire.limits import INT32_MAX
from odradek.wire.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, parse_header

log = logging.getLogger(__name__)

READ_BYTES = 1 << 20
CRC_COVERED = 21
"""The CRC covers the bytes of a batch from here on."""


def recover(segment: Segment, interval_bytes: int, *, contiguous: bool) -> int:
    """Check every batch, truncate the file at the first bad one and rebuild the index.

    Args:
        segment: ``size_bytes`` must be the size of its file.
        interval_bytes: ``index.interval.bytes``.
        contiguous: Whether each batch must follow the previous one without a gap, as in all segments but
            compacted ones.

    Returns:
        The offset after the last batch that is left.
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
    """Like `recover`, for a segment that was closed properly: only check the batches from the last index
    entry on.
    """
    last = index.offsets.last
    position = last[1] if last else 0
    end, next_offset = position, segment.base_offset
    for start, header in intact_batches(segment, position, segment.base_offset, contiguous=False):
        end, next_offset = start + header.size_bytes, header.next_offset
    segment.index = index
    if end == position and position:
        # The entry does not point to an intact batch, so the index belongs to another state of the file.
        return recover(segment, index.interval_bytes, contiguous=True)
    cut(segment, end)
    return next_offset


def cut(segment: Segment, end: int) -> None:
    if end == segment.size_bytes:
        return
    log.warning(
        "truncating a damaged segment",
        extra={"segment": str(segment.path), "kept": end, "cut": segment.size_bytes - end},
    )
    segment.truncate(end)


def intact_batches(
    segment: Segment, position: int, next_offset: int, *, contiguous: bool
) -> Iterator[Located]:
    """The batches from ``position`` on, up to the first that is damaged or out of order."""
    window, start = memoryview(b""), position
    while segment.size_bytes - position >= HEADER_BYTES:
        at = position - start
        if len(window) - at < HEADER_BYTES:
            window, start, at = memoryview(segment.pread(READ_BYTES, position)), position, 0
        if len(window) < HEADER_BYTES:
            return
        header = parse_header(window, at)
        # Unpacked once: after kill -9 a start spends its time in this loop, for every batch of a segment.
        base_offset, batch_length, _, magic, crc, _, last_offset_delta, *_ = header
        size_bytes = batch_length + LOG_OVERHEAD_BYTES
        if (
            magic != MAGIC
            or not HEADER_BYTES <= size_bytes <= segment.size_bytes - position
            or last_offset_delta < 0
            or base_offset < next_offset
            or (contiguous and base_offset != next_offset)
            or base_offset + last_offset_delta - segment.base_offset > INT32_MAX
        ):
            return
        if len(window) - at < size_bytes:
            length = max(READ_BYTES, size_bytes)
            window, start, at = memoryview(segment.pread(length, position)), position, 0
        if crc32c(window[at + CRC_COVERED : at + size_bytes]) != crc:
            return
        yield position, header
        position += size_bytes
        next_offset = base_offset + last_offset_delta + 1
