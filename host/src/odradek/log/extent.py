"""Consecutive batches in the file of one segment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from odradek.log.file_slice import FileSlice
from odradek.log.segment import Segment


@dataclass(slots=True)
class Extent:
    """Whole batches of one segment, to be read at once or while they are sent."""

    segment: Segment
    position: int
    size_bytes: int
    segment_end_offset: int
    """The first offset of the next segment, or a later one than all that exist."""

    def read(self) -> bytes:
        """The batches.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        return self.segment.pread(self.size_bytes, self.position)

    def slice(self) -> FileSlice:
        """The batches, to be read while they are sent."""
        return self.segment.slice(self.size_bytes, self.position)

    def before(self, offset: int) -> Extent:
        """The batches that start before an offset."""
        found = self.segment.locate(offset)
        if found is None:
            return self
        position, header = found
        end = position if header.base_offset >= offset else position + header.size_bytes
        return replace(self, size_bytes=min(self.size_bytes, max(end - self.position, 0)))

    @property
    def end_offset(self) -> int:
        """The first offset of the batch after these, or of the next segment."""
        for _, header in self.segment.walk(self.position + self.size_bytes):
            return header.base_offset
        return self.segment_end_offset
