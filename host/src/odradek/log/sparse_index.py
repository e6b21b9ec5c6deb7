"""Index entries in the layout of Kafka's index files: sorted pairs of big-endian numbers.

After org.apache.kafka.storage.internals.log.{OffsetIndex,TimeIndex}. The entries are kept in memory as the
bytes of the file, so that the index of a full segment (2 MB) is saved with one write. Converting it would
stall the loop.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from pathlib import Path
from typing import Final

from odradek.log.private_file import write_private

OFFSET_ENTRY: Final = struct.Struct(">ii")
"""Offset relative to the segment's base offset, position in the file."""
TIME_ENTRY: Final = struct.Struct(">qi")
"""Greatest timestamp so far, relative offset of its batch."""

Entry = tuple[int, int]


class SparseIndex:
    """Entries whose first and second numbers both increase."""

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
