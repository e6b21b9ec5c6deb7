"""A segment: one file of batches, and its indexes.

After org.apache.kafka.storage.internals.log.LogSegment. Each write goes to the known end of the file. The
remains of a failed or interrupted write are overwritten by the next one, or truncated by recovery.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from odradek.log.log_config import LogConfig
from odradek.log.segment_file import OpenFiles, SegmentFile
from odradek.log.segment_index import SegmentIndex
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Buffer
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.record_batch import HEADER_BYTES, MAGIC, RecordBatchHeader, parse_header

LOG_SUFFIX: Final = ".log"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
"""A compacted segment that is being written."""
SWAP_SUFFIX: Final = ".swap"
"""A complete compacted segment that is replacing older ones."""
WINDOW_BYTES: Final = 8 * 1024
"""Bytes to read at once when walking over headers: a little more than the distance of two index entries."""

Located = tuple[int, RecordBatchHeader]
"""Position of a batch in its segment, and its header."""


class Segment(SegmentFile):
    """Batches from ``base_offset`` on. Appends go to the newest segment of a log; the others are sealed.

    The file is opened when it is needed, and `OpenFiles` may close it. A sealed segment then drops its
    indexes from memory, too.
    """

    __slots__ = (
        "_ahead",
        "_first_timestamp_ms",
        "_index",
        "_interval_bytes",
        "_max_timestamp_ms",
        "base_offset",
        "created_ms",
        "indexed",
        "sealed",
        "stem",
    )

    def __init__(
        self, directory: Path, base_offset: int, interval_bytes: int, created_ms: int, files: OpenFiles
    ) -> None:
        self.stem = directory / f"{base_offset:020d}"
        """Kafka's file name for the offset, without a suffix."""
        super().__init__(self.stem.with_suffix(LOG_SUFFIX), files)
        self.base_offset = base_offset
        self.created_ms = created_ms
        """When the segment became the newest one, or was loaded."""
        self.sealed = False
        self.indexed = False
        """The files of the indexes describe the whole segment. They also are the marker of a clean shutdown,
        so they are removed before the first append.
        """
        self._interval_bytes = interval_bytes
        self._max_timestamp_ms: int | None = None
        self._first_timestamp_ms: int | None = None
        self._index: SegmentIndex | None = None
        self._ahead: Located | None = None
        """The batch after the last read, where a consumer's next read usually starts."""

    # Files

    def create(self) -> None:
        """Create an empty file.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        self._open(os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._first_timestamp_ms = None
        self._index = SegmentIndex(self.base_offset, self._interval_bytes)

    def release(self) -> None:
        """Close the descriptor, which is opened again when it is needed. A sealed segment drops its index."""
        super().release()
        if self.sealed:
            self._index = None

    def bury(self) -> Path:
        """Close the segment and rename its file, which is fast for any size.

        Returns:
            The renamed file. It remains to be unlinked, which may take long.

        Raises:
            OSError: The file still has its old name.
        """
        self.prepare_leaving()
        grave = self.path.with_name(self.path.name + DELETED_SUFFIX)
        os.rename(self.path, grave)
        self.close()
        SegmentIndex.remove(self.stem)
        return grave

    # Index

    @property
    def index(self) -> SegmentIndex:
        if self._index is None:
            loaded = SegmentIndex.load(self.stem, self.base_offset, self._interval_bytes, self.size_bytes)
            self._index = loaded or self.rebuilt_index()
            if self._descriptor < 0:
                self._open(os.O_RDWR)  # so that OpenFiles can make the segment drop its index
        return self._index

    @index.setter
    def index(self, index: SegmentIndex) -> None:
        self._index = index

    @property
    def max_timestamp_ms(self) -> int:
        """The greatest timestamp; -1 if there is none. Cached for a sealed segment, whose index may be
        dropped.
        """
        if not self.sealed:
            return self.index.max_timestamp_ms
        if self._max_timestamp_ms is None:
            self._max_timestamp_ms = self.index.max_timestamp_ms
        return self._max_timestamp_ms

    @property
    def largest_timestamp_ms(self) -> int:
        """The greatest timestamp, or the modification time of the file if no record has a timestamp."""
        timestamp_ms = self.max_timestamp_ms
        return timestamp_ms if timestamp_ms >= 0 else int(os.stat(self.path).st_mtime * 1000)

    def moved_to(self, directory: Path) -> None:
        """Use the new name of the folder that contains the segment."""
        self.stem = directory / self.stem.name
        self.path = directory / self.path.name

    def rebuilt_index(self) -> SegmentIndex:
        """Build the index from the batches in the file, without checking their CRCs."""
        index = SegmentIndex(self.base_offset, self._interval_bytes)
        for position, header in self.walk(0):
            index.note(position, header.size_bytes, header.last_offset, header.max_timestamp_ms)
        return index

    def seal(self) -> None:
        """Write the indexes, because nothing more will be appended.

        Raises:
            OSError: The segment is sealed, but its indexes must be rebuilt when they are needed.
        """
        index = self.index
        self.sealed = True
        if not self.indexed:
            index.save(self.stem)
            self.indexed = True
        self._index = None

    def forget_indexes(self) -> None:
        """Remove the files of the indexes.

        Raises:
            OSError: Some are still there.
        """
        SegmentIndex.remove(self.stem)
        self.indexed = False

    # Writing

    def must_roll(
        self, config: LogConfig, size_bytes: int, last_offset: int, max_timestamp_ms: int, now_ms: int
    ) -> bool:
        """Whether this batch needs a new segment (``LogSegment.shouldRoll``)."""
        if not self.size_bytes:
            return False
        if self.size_bytes > config.segment_bytes - size_bytes:
            return True
        first_ms = self._first_timestamp_ms
        if first_ms is None:
            first_ms = self.first_timestamp_ms
        # segment.ms counts from the first record's timestamp, or without one from the creation of the
        # segment.
        if first_ms is None or first_ms < 0:
            waited_ms = now_ms - self.created_ms
        else:
            waited_ms = max_timestamp_ms - first_ms
        return (
            waited_ms > config.max_segment_ms
            or last_offset - self.base_offset > INT32_MAX
            or self.index.next_size_bytes > config.segment_index_bytes
        )

    def append(
        self, parts: Sequence[Buffer], size_bytes: int, last_offset: int, max_timestamp_ms: int
    ) -> None:
        """Write one batch, given in parts, to the page cache.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the segment is unchanged.
        """
        try:
            if self.indexed:
                self.forget_indexes()
            position = self.size_bytes
            written = os.pwritev(self.descriptor, parts, position)
            if written != size_bytes:
                self._write_rest(b"".join(parts), written)
        except OSError as error:
            self._cut_quietly()
            raise self._failed("append to", error) from error
        self.index.note(position, size_bytes, last_offset, max_timestamp_ms)
        if not position:
            self._first_timestamp_ms = max_timestamp_ms
        self.size_bytes = position + size_bytes

    def append_many(self, batches: bytes) -> int:
        """Write complete batches that already have their offsets; return the offset after them.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the segment is unchanged.
        """
        start = self.size_bytes
        try:
            self._write_rest(batches, 0)
        except OSError as error:
            self._cut_quietly()
            raise self._failed("append to", error) from error
        next_offset, position = self.base_offset, 0
        while position < len(batches):
            header = parse_header(batches, position)
            self.index.note(start + position, header.size_bytes, header.last_offset, header.max_timestamp_ms)
            position += header.size_bytes
            next_offset = header.next_offset
        self.size_bytes += position
        return next_offset

    def truncate(self, size_bytes: int) -> None:
        """Truncate the file. The caller must rebuild the index."""
        os.truncate(self.path, size_bytes)
        self.size_bytes = size_bytes
        self._first_timestamp_ms = None
        self._ahead = None

    # Reading

    def walk(self, position: int) -> Iterator[Located]:
        """Iterate over the batches, from the one at ``position`` on.

        Raises:
            ApiError: CORRUPT_MESSAGE if there is no batch at a position; KAFKA_STORAGE_ERROR.
        """
        window, start = b"", position
        while position < self.size_bytes:
            at = position - start
            if at + HEADER_BYTES > len(window):
                window, start, at = self.pread(WINDOW_BYTES, position), position, 0
            if at + HEADER_BYTES > len(window):
                raise self._corrupt(position)
            header = parse_header(window, at)
            if header.magic != MAGIC or header.size_bytes < HEADER_BYTES:
                raise self._corrupt(position)
            yield position, header
            position += header.size_bytes

    def _corrupt(self, position: int) -> ApiError:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"no record batch at byte {position} of {self.path.name}")

    def expect(self, located: Located) -> None:
        """The next read probably begins with this batch."""
        self._ahead = located

    def locate(self, offset: int) -> Located | None:
        """The batch that contains ``offset``, or the next batch; None if this segment has neither."""
        ahead = self._ahead
        if ahead is not None and ahead[1].base_offset <= offset <= ahead[1].last_offset:
            return ahead
        for position, header in self.walk(self.index.position_before(offset)):
            if header.last_offset >= offset:
                return position, header
        return None

    def locate_time(self, timestamp_ms: int, start_offset: int) -> Iterator[Located]:
        """The batches with a timestamp of ``timestamp_ms`` or later that extend to ``start_offset`` or
        further.
        """
        begin = self.index.position_before_time(timestamp_ms)
        if start_offset > self.base_offset:
            begin = max(begin, self.index.position_before(start_offset))
        for position, header in self.walk(begin):
            if header.max_timestamp_ms >= timestamp_ms and header.last_offset >= start_offset:
                yield position, header

    def find(self, offset: int, max_bytes: int, min_one_message: bool) -> tuple[int, int] | None:
        """Position and size of complete batches from the one that contains ``offset``, or the next one, on;
        None if there is none.
        """
        found = self.locate(offset)
        if found is None:
            return None
        position, header = found
        if header.size_bytes > max_bytes:
            return position, header.size_bytes if min_one_message else 0
        return position, self._boundary(position + header.size_bytes, position + max_bytes) - position

    def _boundary(self, position: int, limit: int) -> int:
        """The last end of a batch that is not after ``limit``. A batch must start or end at ``position``."""
        if limit >= self.size_bytes:
            return self.size_bytes
        boundary = position
        if limit - position > WINDOW_BYTES:
            # The index jumps over most of the distance; the walk covers the rest.
            boundary = max(position, self.index.boundary_before(limit))
        for start, header in self.walk(boundary):
            boundary = start
            if start + header.size_bytes > limit:
                self._ahead = start, header
                break
        return boundary

    def span(self, position: int, max_bytes: int) -> bytes:
        """Complete batches from ``position`` on, up to ``max_bytes`` but at least one."""
        for start, header in self.walk(position):
            end = max(start + header.size_bytes, self._boundary(position, position + max_bytes))
            return self.pread(end - position, position)
        return b""

    def read_batch(self, found: Located) -> bytes:
        position, header = found
        return self.pread(header.size_bytes, position)

    @property
    def first_timestamp_ms(self) -> int | None:
        """The greatest timestamp of the first batch, from which ``segment.ms`` counts; None without
        batches.
        """
        if self._first_timestamp_ms is None:
            for _, header in self.walk(0):
                self._first_timestamp_ms = header.max_timestamp_ms
                break
        return self._first_timestamp_ms
