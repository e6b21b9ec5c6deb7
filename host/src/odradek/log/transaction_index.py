"""The aborted transactions of one partition, whose records a ``read_committed`` consumer must skip.

After org.apache.kafka.storage.internals.log.TransactionIndex. Kafka has a file for each segment. Here the
entries are in memory, 32 bytes each, and are saved in the producer snapshots.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator
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
    """Aborted transactions in the order of their markers, as columns of 64-bit numbers."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        self._columns = tuple(array("q") for _ in AbortedTransaction._fields)

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: int) -> AbortedTransaction:
        return AbortedTransaction(*(column[index] for column in self._columns))

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return (AbortedTransaction(*row) for row in zip(*self._columns, strict=True))

    def append(self, aborted: AbortedTransaction) -> None:
        """Add an entry, whose marker must follow those of all others."""
        for column, value in zip(self._columns, aborted, strict=True):
            column.append(value)

    def reaches(self, offset: int) -> bool:
        """Whether any marker is at ``offset`` or later."""
        return bool(self) and self._columns[2][-1] >= offset

    def overlapping(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The transactions that may have records from ``first_offset`` on and before ``end_offset``."""
        found: list[AbortedTransaction] = []
        for index in range(bisect_left(self._columns[2], first_offset), len(self)):
            entry = self[index]
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                break  # all later entries start at or after end_offset
        return found

    def forget_before(self, offset: int) -> None:
        """Drop the transactions that ended before ``offset``: their records can no longer be read."""
        count = bisect_left(self._columns[2], offset)
        if count:
            self._columns = tuple(column[count:] for column in self._columns)

    def forget(self, last_offsets: Collection[int]) -> None:
        """Drop the transactions with these markers, whose records compaction has removed."""
        kept = [index for index in range(len(self)) if self._columns[2][index] not in last_offsets]
        self._columns = tuple(array("q", (column[index] for index in kept)) for column in self._columns)

    def encoded(self) -> bytes:
        """The columns one after another, big-endian."""
        return b"".join(_swapped(column).tobytes() for column in self._columns)

    @classmethod
    def decoded(cls, data: bytes) -> TransactionIndex:
        """The index from the bytes of `encoded`; their number must be a multiple of 32."""
        index = cls()
        step = len(data) // len(index._columns)
        for number, column in enumerate(index._columns):
            column.frombytes(data[number * step : (number + 1) * step])
        index._columns = tuple(_swapped(column) for column in index._columns)
        return index


def _swapped(column: array[int]) -> array[int]:
    copy = array("q", column)
    if sys.byteorder == "little":
        copy.byteswap()
    return copy
