"""From the files of a partition to its segments and its producers.

After org.apache.kafka.storage.internals.log.LogLoader. A log that was closed properly has index files
for its newest segment, too; they are removed as soon as it is open. So their presence is the clean-shutdown
marker, and without them the newest segment is checked batch by batch.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

from odradek.log.log_config import LogConfig
from odradek.log.open_files import OpenFiles
from odradek.log.producer_snapshot import load_snapshot
from odradek.log.producer_state_manager import ProducerStateManager
from odradek.log.recovery import intact_batches, recover, resume
from odradek.log.segment import LOG_SUFFIX, Segment
from odradek.log.segment_index import SegmentIndex
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)


def load_segments(
    directory: Path, config: LogConfig, files: OpenFiles, now_ms: int
) -> tuple[list[Segment], int]:
    """The segments by their offsets, at least one, and the next offset.

    Raises:
        OSError: A file cannot be read or cut.
        ApiError: KAFKA_STORAGE_ERROR, the same.
    """
    for draft in directory.glob("*.tmp"):
        draft.unlink(missing_ok=True)
    interval_bytes = config.index_interval_bytes
    segments = [
        Segment(directory, base_offset, interval_bytes, now_ms, files)
        for base_offset in base_offsets(directory)
    ]
    if not segments:
        segment = Segment(directory, 0, interval_bytes, now_ms, files)
        segment.create()
        return [segment], 0
    for segment in segments:
        segment.size_bytes = os.stat(segment.path).st_size
    for segment in segments[:-1]:
        _load_sealed(segment, interval_bytes)
    return segments, _load_newest(segments[-1], interval_bytes)


def base_offsets(directory: Path) -> list[int]:
    """The base offsets of the segments in ``directory``, in order."""
    stems = (path.stem for path in directory.glob("*" + LOG_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def _load_sealed(segment: Segment, interval_bytes: int) -> None:
    """Trust the indexes of an older segment, if the file ends with a whole batch."""
    segment.sealed = True
    index = SegmentIndex.load(segment.stem, segment.base_offset, interval_bytes, segment.size_bytes)
    if index is None or not _ends_well(segment, index):
        recover(segment, interval_bytes, contiguous=False)
        with suppress(OSError):  # on a full disk the index stays in memory
            segment.index.save(segment.stem)


def _ends_well(segment: Segment, index: SegmentIndex) -> bool:
    last = index.offsets.last
    end = position = last[1] if last else 0
    for start, header in intact_batches(segment, position, segment.base_offset, contiguous=False):
        end = start + header.size_bytes
    return end == segment.size_bytes


def _load_newest(segment: Segment, interval_bytes: int) -> int:
    index = SegmentIndex.load(segment.stem, segment.base_offset, interval_bytes, segment.size_bytes)
    SegmentIndex.remove(segment.stem)
    if index is None:
        return recover(segment, interval_bytes, contiguous=True)
    return resume(segment, index)


def load_producers(
    directory: Path, segments: list[Segment], end_offset: int, producers: ProducerStateManager
) -> None:
    """The newest snapshot, and the headers of the batches behind it."""
    offset, producers.producers = load_snapshot(directory, end_offset)
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else end_offset
        if following > offset:
            _replay(segment, offset, producers)


def _replay(segment: Segment, offset: int, producers: ProducerStateManager) -> None:
    try:
        found = segment.locate(offset)
        if found is None:
            return
        for _, header in segment.walk(found[0]):
            if header.producer_id >= 0 and header.base_offset >= offset and not header.is_control:
                producers.appended(header, header.base_offset, header.max_timestamp_ms)
    except ApiError as error:
        log.warning("cannot replay producers", extra={"segment": str(segment.path), "problem": str(error)})
