"""The segments of one partition: rolling, deleting, replacing and flushing them.

After org.apache.kafka.storage.internals.log.{LogSegments,LocalLog}.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final

from odradek.log.extent import Extent
from odradek.log.segment import SWAP_SUFFIX, Segment
from odradek.log.segment_file import OpenFiles
from odradek.wire.limits import INT64_MAX

_BASE_OFFSET: Final = attrgetter("base_offset")


@dataclass(slots=True)
class Grave:
    """The file of a deleted segment, which is unlinked after ``file.delete.delay.ms``."""

    path: Path
    delay_ms: int
    due_ms: int = INT64_MAX
    """On the monotonic clock; set when the upkeep first sees the grave."""


class LogSegments:
    """At least one segment, oldest first. The last one is active: appends go there."""

    __slots__ = ("_names_flushed", "_unflushed", "active", "all", "directory", "files", "graves")

    def __init__(self, directory: Path, files: OpenFiles, segments: list[Segment]) -> None:
        self.directory = directory
        self.files = files
        self.all = segments
        self.active = segments[-1]
        self.graves: deque[Grave] = deque()
        """Files of deleted segments that are still on the disk, oldest first."""
        self._unflushed: list[Segment] = [self.active]
        self._names_flushed = False

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.all)

    def from_offset(self, offset: int) -> Sequence[Segment]:
        """The segment whose range contains ``offset``, and all later ones."""
        if offset >= self.active.base_offset:
            return (self.active,)
        return self.all[bisect_right(self.all, offset, key=_BASE_OFFSET) - 1 :]

    def find(self, offset: int, max_bytes: int, min_one_message: bool) -> Extent | None:
        """Complete batches from the one that contains ``offset``, or the next one, on; None if there is
        none.
        """
        active = self.active
        if offset >= active.base_offset:
            found = active.find(offset, max_bytes, min_one_message)
            return None if found is None else Extent(active, found[0], found[1], INT64_MAX)
        segments = self.from_offset(offset)
        for place, segment in enumerate(segments):
            # Compaction may have removed the batch and all that follow it in this segment: try the next one.
            found = segment.find(offset, max_bytes, min_one_message)
            if found is not None:
                following = segments[place + 1].base_offset if place + 1 < len(segments) else INT64_MAX
                return Extent(segment, *found, following)
        return None

    def roll_to(self, segment: Segment) -> Segment:
        """Make ``segment`` the active one; return the previous active segment."""
        sealed, self.active = self.active, segment
        self.all.append(segment)
        self._unflushed.append(segment)
        self._names_flushed = False
        return sealed

    # Deleting

    def bury_oldest(self, delay_ms: int) -> None:
        """Delete the oldest segment, which must not be the only one.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the segment is still there.
        """
        self._bury(self.all[0], delay_ms)
        self.all = self.all[1:]

    def _bury(self, segment: Segment, delay_ms: int) -> None:
        try:
            self.graves.append(Grave(segment.bury(), delay_ms))
        except OSError as error:
            raise self.files.failures.answer("delete", segment.path, error) from error
        if segment in self._unflushed:
            self._unflushed.remove(segment)

    def replace(self, old: Sequence[Segment], compacted: Segment, delay_ms: int) -> bool:
        """Replace segments by the compacted one made from them, which is written and flushed.

        Returns:
            False if the segments are no longer there; nothing has changed.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the next start completes the replacement.
        """
        first = self.all.index(old[0]) if old[0] in self.all else -1
        if first < 0 or self.all[first : first + len(old)] != list(old):
            return False
        path = old[0].path
        # The point of no return. From here on a crash leaves a .swap file, which the next start puts in the
        # place of the originals that are still there; before, it leaves a .cleaned file, which the next start
        # deletes.
        try:
            compacted.rename(path.with_name(path.name + SWAP_SUFFIX))
        except OSError as error:
            raise self.files.failures.answer("swap in", compacted.path, error) from error
        self.all = [*self.all[:first], compacted, *self.all[first + len(old) :]]
        # The compacted segment takes the name of the first original, which therefore goes last.
        for segment in reversed(old):
            self._bury(segment, delay_ms)
        try:
            compacted.rename(path)
            compacted.seal()
        except OSError as error:
            raise self.files.failures.answer("swap in", compacted.path, error) from error
        return True

    # Flushing

    def flush_work(self) -> Callable[[], None]:
        """All that must be flushed now, as a function for another thread. It must be called exactly once, and
        raises `OSError`.
        """
        flushers = [segment.flusher() for segment in self._unflushed]
        # A new file survives a power failure only if its folder has been flushed, too.
        folders = () if self._names_flushed else (self.directory, self.directory.parent)

        def flush() -> None:
            for flusher in flushers:
                flusher()
            for folder in folders:
                _flush_directory(folder)

        return flush

    def flushed(self, segments: Sequence[Segment]) -> None:
        """Note that ``flush_work`` is done. ``segments`` are all that existed when it was made."""
        self._names_flushed = segments[-1] is self.active
        self._unflushed = [each for each in self._unflushed if each is self.active or each not in segments]

    # All segments

    def move_to(self, directory: Path, segments: list[Segment]) -> None:
        """Continue with copies of all segments in another folder."""
        self.close()
        self.graves.clear()  # deleted with the old folder
        self.directory = directory
        self.all, self.active = segments, segments[-1]
        self._unflushed = list(segments)
        self._names_flushed = False

    def close(self) -> None:
        for segment in self.all:
            segment.close()


def _flush_directory(directory: Path) -> None:
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except FileNotFoundError:
        return  # the folder was deleted meanwhile
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
