"""The transactions of one partition that were aborted: what a consumer with ``read_committed`` must skip.

After org.apache.kafka.storage.internals.log.TransactionIndex. Kafka has a file for each segment; here the
entries are kept in memory, 32 bytes each, and go to disk with the snapshots of the producers.
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
    """Of the ABORT marker."""
    last_stable_offset: int
    """Once the marker was there: every later entry begins at or behind it."""


class TransactionIndex:
    """Aborted transactions by the offset of their markers, as columns of 64-bit numbers."""

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
        """Add an entry; its marker is behind those of all others."""
        for column, value in zip(self._columns, aborted, strict=True):
            column.append(value)

    def reaches(self, offset: int) -> bool:
        """Whether any of them ended at ``offset`` or later."""
        return bool(self) and self._columns[2][-1] >= offset

    def overlapping(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those that may have a record from ``first_offset`` on and before ``end_offset``."""
        found: list[AbortedTransaction] = []
        for index in range(bisect_left(self._columns[2], first_offset), len(self)):
            entry = self[index]
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                break
        return found

    def forget_before(self, offset: int) -> None:
        """Drop what ended before ``offset``: nobody can read it."""
        count = bisect_left(self._columns[2], offset)
        if count:
            self._columns = tuple(column[count:] for column in self._columns)

    def forget(self, last_offsets: Collection[int]) -> None:
        """Drop the transactions with these markers: compaction has removed their records."""
        kept = [index for index in range(len(self)) if self._columns[2][index] not in last_offsets]
        self._columns = tuple(array("q", (column[index] for index in kept)) for column in self._columns)

    def encoded(self) -> bytes:
        """The columns one after another, big-endian."""
        return b"".join(_swapped(column).tobytes() for column in self._columns)

    @classmethod
    def decoded(cls, data: bytes) -> TransactionIndex:
        """What ``encoded`` made; its length is a multiple of 32."""
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
