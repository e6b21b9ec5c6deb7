"""The offset index and the time index of one segment.

After org.apache.kafka.storage.internals.log.LogSegment: the first batch after each ``index.interval.bytes``
has an entry in the offset index, with its *last* offset and the position of its first byte. At the same time
the time index gets an entry, if the greatest timestamp has increased since its last entry.

The entries are kept in memory as the bytes of Kafka's files, so that the index of a full segment (2 MB) is
saved with one write. Converting it would stall the loop.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from pathlib import Path
from typing import Final

from odradek.log.private_file import write_private
from odradek.wire.record import NO_TIMESTAMP

OFFSET_ENTRY: Final = struct.Struct(">ii")
"""Offset relative to the segment's base offset, position in the file."""
TIME_ENTRY: Final = struct.Struct(">qi")
"""Greatest timestamp so far, relative offset of its batch."""

Entry = tuple[int, int]
_OFFSET_SUFFIX: Final = ".index"
_TIME_SUFFIX: Final = ".timeindex"
INDEX_SUFFIXES: Final = (_OFFSET_SUFFIX, _TIME_SUFFIX)


class SparseIndex:
    """Entries whose first and second numbers both increase: sorted pairs of big-endian numbers.

    After org.apache.kafka.storage.internals.log.{OffsetIndex,TimeIndex}.
    """

    __slots__ = ("_entries", "_layout")

    def __init__(self, layout: struct.Struct, entries: bytes = b"") -> None:
        self._layout = layout
        self._entries = bytearray(entries)

    def __len__(self) -> int:
        return len(self._entries) // self._layout.size

    def __getitem__(self, index: int) -> Entry:
        first, second = self._layout.unpack_from(self._entries, index * self._layout.size)
        return first, second

    @property
    def last(self) -> Entry | None:
        return self[len(self) - 1] if self._entries else None

    @property
    def size_bytes(self) -> int:
        return len(self._entries)

    def append(self, first: int, second: int) -> None:
        self._entries += self._layout.pack(first, second)

    def floor(self, first: int) -> Entry | None:
        """The last entry whose first number is not above ``first``."""
        index = bisect_right(range(len(self)), first, key=lambda index: self[index][0])
        return self[index - 1] if index else None

    def floor_of_second(self, second: int) -> Entry | None:
        """The last entry whose second number is not above ``second``."""
        index = bisect_right(range(len(self)), second, key=lambda index: self[index][1])
        return self[index - 1] if index else None

    def save(self, path: Path) -> None:
        """Write the file atomically: with all its entries, or not at all."""
        draft = path.with_name(path.name + ".tmp")
        write_private(draft, self._entries)
        draft.rename(path)

    @classmethod
    def load(cls, path: Path, layout: struct.Struct) -> SparseIndex | None:
        """Load a file; None if it does not exist or cannot be an index."""
        try:
            index = cls(layout, path.read_bytes())
        except OSError:
            return None
        if len(index._entries) % layout.size:
            return None
        if len(index) > 1 and not (index[0][0] < index[len(index) - 1][0]):
            return None
        return index


class SegmentIndex:
    """Both indexes of one segment, and its greatest timestamp.

    The files exist only while nothing is appended to the segment; they are removed first. So files that exist
    are complete.
    """

    __slots__ = (
        "_bytes_since_entry",
        "base_offset",
        "interval_bytes",
        "max_timestamp_ms",
        "next_size_bytes",
        "offset_of_max_timestamp",
        "offsets",
        "times",
    )

    def __init__(
        self,
        base_offset: int,
        interval_bytes: int,
        offsets: SparseIndex | None = None,
        times: SparseIndex | None = None,
    ) -> None:
        self.base_offset = base_offset
        self.offsets = offsets or SparseIndex(OFFSET_ENTRY)
        self.times = times or SparseIndex(TIME_ENTRY)
        self.interval_bytes = interval_bytes
        self._bytes_since_entry = 0
        timestamp_ms, relative_offset = self.times.last or (NO_TIMESTAMP, 0)
        self.max_timestamp_ms = timestamp_ms
        self.offset_of_max_timestamp = base_offset + relative_offset
        """The last offset of the first batch that has the greatest timestamp."""
        self.next_size_bytes = self._with_another_entry()
        """The size of the larger index with another entry, which ``segment.index.bytes`` limits."""

    def note(self, position: int, size_bytes: int, last_offset: int, max_timestamp_ms: int) -> None:
        """Record the batch at ``position``; called once for each batch, in order."""
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.offset_of_max_timestamp = last_offset
        if self._bytes_since_entry > self.interval_bytes:
            self.offsets.append(last_offset - self.base_offset, position)
            self._note_time()
            self.next_size_bytes = self._with_another_entry()
            self._bytes_since_entry = 0
        self._bytes_since_entry += size_bytes

    def _note_time(self) -> None:
        last = self.times.last
        if self.max_timestamp_ms > (last[0] if last else NO_TIMESTAMP):
            self.times.append(self.max_timestamp_ms, self.offset_of_max_timestamp - self.base_offset)

    def _with_another_entry(self) -> int:
        return max(self.offsets.size_bytes + OFFSET_ENTRY.size, self.times.size_bytes + TIME_ENTRY.size)

    def position_before(self, offset: int) -> int:
        """Position of a batch that is not after the one with ``offset``."""
        entry = self.offsets.floor(offset - self.base_offset)
        return entry[1] if entry else 0

    def boundary_before(self, position: int) -> int:
        """Position of a batch that starts at ``position`` or before."""
        entry = self.offsets.floor_of_second(position)
        return entry[1] if entry else 0

    def position_before_time(self, timestamp_ms: int) -> int:
        """Position of a batch not after the first one with a timestamp of ``timestamp_ms`` or later."""
        entry = self.times.floor(timestamp_ms)
        return self.position_before(self.base_offset + entry[1]) if entry else 0

    def save(self, stem: Path) -> None:
        """Write both files. A missing file is rebuilt from the segment.

        Raises:
            OSError: Neither file is left.
        """
        self._note_time()
        try:
            self.times.save(stem.with_suffix(_TIME_SUFFIX))
            self.offsets.save(stem.with_suffix(_OFFSET_SUFFIX))
        except OSError:
            self.remove(stem)
            raise

    @staticmethod
    def remove(stem: Path) -> None:
        for suffix in INDEX_SUFFIXES:
            stem.with_suffix(suffix).unlink(missing_ok=True)
            stem.with_suffix(suffix + ".tmp").unlink(missing_ok=True)

    @classmethod
    def load(cls, stem: Path, base_offset: int, interval_bytes: int, size_bytes: int) -> SegmentIndex | None:
        """Load both files; None if one is missing or does not match a segment of ``size_bytes``."""
        offsets = SparseIndex.load(stem.with_suffix(_OFFSET_SUFFIX), OFFSET_ENTRY)
        times = SparseIndex.load(stem.with_suffix(_TIME_SUFFIX), TIME_ENTRY)
        if offsets is None or times is None:
            return None
        if offsets.last and not 0 < offsets.last[1] < size_bytes:
            return None
        return cls(base_offset, interval_bytes, offsets, times)
