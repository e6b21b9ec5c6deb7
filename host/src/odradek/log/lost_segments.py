"""Log what a partition has lost: missing and empty segment files.

A host that starts goes on with the records that are left, as Kafka does. Offsets of compacted logs have gaps
anyhow, so gaps in these are not reported.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from odradek.log.log_config import LogConfig
from odradek.log.offset_checkpoint import CLEANER_OFFSET, read_offset
from odradek.log.segment import DELETED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX, Segment
from odradek.log.segment_index import INDEX_SUFFIXES, SegmentIndex

log = logging.getLogger(__name__)

_KNOWN: Final = (LOG_SUFFIX, LOG_SUFFIX + SWAP_SUFFIX, LOG_SUFFIX + DELETED_SUFFIX)


def remove_orphaned_indexes(directory: Path, names: Collection[str]) -> None:
    """Delete the indexes of segments that do not exist, and log each segment.

    Must be called before the files of deleted segments are removed: a crash may leave their indexes.

    Args:
        directory: The partition's folder.
        names: The files in it.

    Raises:
        OSError: A file cannot be deleted.
    """
    for name in sorted(name for name in names if name.endswith(INDEX_SUFFIXES[0])):
        stem = name.removesuffix(INDEX_SUFFIXES[0])
        if stem.isdecimal() and not any(stem + suffix in names for suffix in _KNOWN):
            log.warning(
                "a segment is missing, only its index is left",
                extra={"segment": f"{directory / stem}{LOG_SUFFIX}"},
            )
            SegmentIndex.remove(directory / stem)


def report_if_emptied(segment: Segment, names: Collection[str]) -> None:
    """Log that a segment is empty if its index, one of the files in its folder, shows that it had records."""
    if not segment.size_bytes and any(
        (index := segment.stem.with_suffix(suffix)).name in names and index.stat().st_size
        for suffix in INDEX_SUFFIXES
    ):
        log.warning("a segment is empty, its records are lost", extra={"segment": str(segment.path)})


def report_gaps(directory: Path, config: LogConfig, segments: Sequence[Segment], ends: Sequence[int]) -> None:
    """Log the offsets that are in no segment.

    Args:
        directory: The partition's folder.
        config: Its configuration.
        segments: Its segments, by offset.
        ends: The offset after the last record of each segment but the last.
    """
    if not ends or config.is_compacted or read_offset(directory, CLEANER_OFFSET) is not None:
        return
    for segment, end in zip(segments[1:], ends, strict=True):
        if end < segment.base_offset:
            log.warning(
                "records are missing between two segments",
                extra={"folder": str(directory), "first": end, "last": segment.base_offset - 1},
            )
