"""The aborted transactions of one partition, whose records a ``read_committed`` consumer must skip.

After org.apache.kafka.storage.internals.log.TransactionIndex. Kafka has a file for each segment. Here the
entries are in memory and are saved in the producer snapshots.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple


class AbortedTransaction(NamedTuple):
    """One aborted transaction on one partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the ABORT marker."""
    last_stable_offset: int
    """The last stable offset after the marker. Every later entry starts at this offset or after it."""


class TransactionIndex:
    """Aborted transactions in the order of their markers."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[AbortedTransaction] = ()) -> None:
        self._entries = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return iter(self._entries)

    def append(self, aborted: AbortedTransaction) -> None:
        """Add an entry, whose marker must follow those of all others."""
        self._entries.append(aborted)

    def reaches(self, offset: int) -> bool:
        """Whether any marker is at ``offset`` or later."""
        return bool(self._entries) and self._entries[-1].last_offset >= offset

    def overlapping(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The transactions that may have records from ``first_offset`` on and before ``end_offset``."""
        found: list[AbortedTransaction] = []
        for entry in self._entries[self._first_from(first_offset) :]:
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                break  # all later entries start at or after end_offset
        return found

    def _first_from(self, offset: int) -> int:
        return bisect_left(self._entries, offset, key=attrgetter("last_offset"))

    def forget_before(self, offset: int) -> None:
        """Drop the transactions that ended before ``offset``: their records can no longer be read."""
        del self._entries[: self._first_from(offset)]

    def forget(self, last_offsets: Collection[int]) -> None:
        """Drop the transactions with these markers, whose records compaction has removed."""
        self._entries = [each for each in self._entries if each.last_offset not in last_offsets]

    def encoded(self) -> bytes:
        """All producer ids, then all first offsets and so on, as 64-bit numbers."""
        return b"".join(
            struct.pack(f">{len(column)}q", *column) for column in zip(*self._entries, strict=True)
        )

    @classmethod
    def decoded(cls, data: bytes) -> TransactionIndex:
        """The index from the bytes of `encoded`; their number must be a multiple of 32."""
        columns = struct.iter_unpack(f">{len(data) // 32}q", data) if data else ((), (), (), ())
        return cls(map(AbortedTransaction, *columns))
