"""Loads the segments and the producers of a partition from its files.

After org.apache.kafka.storage.internals.log.LogLoader. Only a log that was closed properly has index files
for its newest segment, because the first append removes them. They therefore serve as the clean-shutdown
marker: without them the newest segment is checked batch by batch.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from odradek.log.control_batch import marker_of
from odradek.log.log_config import LogConfig
from odradek.log.lost_segments import remove_orphaned_indexes, report_gaps, report_if_emptied
from odradek.log.offset_checkpoint import LOG_START_OFFSET, read_offset
from odradek.log.producer_snapshot import load_snapshot, snapshot_offsets
from odradek.log.producer_state_manager import ProducerStateManager
from odradek.log.recovery import intact_batches, recover, resume
from odradek.log.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    Located,
    Segment,
)
from odradek.log.segment_file import OpenFiles
from odradek.log.segment_index import INDEX_SUFFIXES, SegmentIndex
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)

UNFINISHED: Final = (".tmp", CLEANED_SUFFIX, DELETED_SUFFIX)


def load_segments(
    directory: Path, names: set[str], config: LogConfig, files: OpenFiles, now_ms: int
) -> tuple[list[Segment], int]:
    """The segments in the order of their offsets, at least one, and the next offset.

    Args:
        directory: The partition's folder.
        names: The files in it, listed once: a host may have tens of thousands of partitions.
        config: The configuration of the log.
        files: The open files of all logs.
        now_ms: The time.

    Raises:
        OSError: A file cannot be read or truncated.
        ApiError: KAFKA_STORAGE_ERROR, for the same reasons.
    """
    remove_orphaned_indexes(directory, names)
    # Unfinished files first: a .cleaned segment is incomplete, a .deleted one is no longer part of the log.
    for leftover in [name for name in names if name.endswith(UNFINISHED)]:
        (directory / leftover).unlink(missing_ok=True)
    # Before the segments are listed: a swap replaces some of them.
    if finish_swaps(directory, names, config, files, now_ms):
        names = set(os.listdir(directory))
    interval_bytes = config.index_interval_bytes
    segments = [
        Segment(directory, base_offset, interval_bytes, now_ms, files) for base_offset in base_offsets(names)
    ]
    if not segments:
        segment = Segment(directory, 0, interval_bytes, now_ms, files)
        segment.create()
        return [segment], 0
    for segment in segments:
        segment.size_bytes = os.stat(segment.path).st_size
        report_if_emptied(segment, names)
    ends = [_load_sealed(segment, interval_bytes) for segment in segments[:-1]]
    report_gaps(directory, config, segments, ends)
    return segments, _load_newest(segments[-1], names, interval_bytes)


def base_offsets(names: Iterable[str]) -> list[int]:
    """The base offsets of the segments among the files of a folder, in order."""
    stems = (name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def finish_swaps(
    directory: Path, names: Iterable[str], config: LogConfig, files: OpenFiles, now_ms: int
) -> bool:
    """Finish replacing segments by their compacted copies, where a crash interrupted it.

    A segment that starts within the offsets of a compacted one is an original of its records and is deleted.
    An original that starts after the last compacted record may stay: compaction kept none of its records, and
    will remove them again.

    Returns:
        Whether there was one.
    """
    swaps = sorted(name for name in names if name.endswith(LOG_SUFFIX + SWAP_SUFFIX))
    for path in [directory / name for name in swaps]:
        base_offset = int(path.name.partition(".")[0])
        swap = Segment(directory, base_offset, config.index_interval_bytes, now_ms, files)
        swap.path, swap.size_bytes = path, os.stat(path).st_size
        end_offset = base_offset + 1
        for _, header in swap.walk(0):
            end_offset = header.next_offset
        swap.close()
        for older in base_offsets(os.listdir(directory)):
            if base_offset < older < end_offset:
                Segment(directory, older, config.index_interval_bytes, now_ms, files).bury().unlink()
        SegmentIndex.remove(swap.stem)
        swap.rename(swap.stem.with_suffix(LOG_SUFFIX))
    return bool(swaps)


def load_start_offset(
    directory: Path,
    names: Collection[str],
    segments: list[Segment],
    next_offset: int,
    fresh: Callable[[int], Segment],
) -> tuple[list[Segment], int, int]:
    """The log start offset set by DeleteRecords, with the segments and the next offset to use with it.

    If a crash has cut the log before this offset, the log restarts there, empty, as in Kafka's LogLoader. A
    lower offset would be given to a second record.
    """
    stored = read_offset(directory, LOG_START_OFFSET) if LOG_START_OFFSET in names else None
    start = max(stored or 0, segments[0].base_offset)
    if start <= next_offset:
        return segments, start, next_offset
    log.warning(
        "the log ends before its start offset: starting it empty from there",
        extra={"folder": str(directory), "start": start},
    )
    for segment in segments:
        segment.bury().unlink()
    return [fresh(start)], start, start


def _load_sealed(segment: Segment, interval_bytes: int) -> int:
    """Load the indexes of an older segment; rebuild them unless the file ends with a whole batch. Return the
    offset after its last batch.
    """
    segment.sealed = True
    index = SegmentIndex.load(segment.stem, segment.base_offset, interval_bytes, segment.size_bytes)
    if index is not None:
        size_bytes, next_offset = _end_of(segment, index)
        if size_bytes == segment.size_bytes:
            return next_offset
    next_offset = recover(segment, interval_bytes, contiguous=False)
    with suppress(OSError):  # if the disk is full, the index stays in memory
        segment.index.save(segment.stem)
    return next_offset


def _end_of(segment: Segment, index: SegmentIndex) -> tuple[int, int]:
    """The position and the offset after the last whole batch."""
    last = index.offsets.last
    end, next_offset = last[1] if last else 0, segment.base_offset
    for start, header in intact_batches(segment, end, segment.base_offset, contiguous=False):
        end, next_offset = start + header.size_bytes, header.next_offset
    return end, next_offset


def _load_newest(segment: Segment, names: set[str], interval_bytes: int) -> int:
    if not any(segment.stem.name + suffix in names for suffix in INDEX_SUFFIXES):
        return recover(segment, interval_bytes, contiguous=True)
    index, size_bytes = None, segment.size_bytes
    if size_bytes:
        index = SegmentIndex.load(segment.stem, segment.base_offset, interval_bytes, size_bytes)
    if index is None:
        next_offset = recover(segment, interval_bytes, contiguous=True)
    else:
        next_offset = resume(segment, index)
    if segment.index is index and segment.size_bytes == size_bytes:
        segment.indexed = True
    else:
        segment.forget_indexes()
    return next_offset


def load_producers(
    directory: Path,
    names: Iterable[str],
    segments: list[Segment],
    end_offset: int,
    producers: ProducerStateManager,
) -> int:
    """Restore the producers from the newest snapshot and the headers of the batches after it. Return the
    offset of the snapshot, 0 if there is none.
    """
    offset, states, aborted = load_snapshot(directory, end_offset, snapshot_offsets(names))
    producers.restore(states, aborted)
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else end_offset
        if following > offset:
            _replay(segment, offset, producers)
    return offset


def _replay(segment: Segment, offset: int, producers: ProducerStateManager) -> None:
    try:
        found = segment.locate(offset)
        if found is None:
            return
        for located in segment.walk(found[0]):
            if located[1].producer_id >= 0 and located[1].base_offset >= offset:
                _replay_batch(segment, located, producers)
    except ApiError as error:
        log.warning(
            "cannot restore all producers from a segment; their retries may be appended twice",
            extra={"segment": str(segment.path), "problem": str(error)},
        )


def _replay_batch(segment: Segment, located: Located, producers: ProducerStateManager) -> None:
    _, header = located
    if not header.is_control:
        producers.appended(header, header.base_offset, header.max_timestamp_ms)
        return
    marker = marker_of(segment.read_batch(located), header)
    if marker is not None:
        producers.ended(marker, header.base_offset, header.max_timestamp_ms)
