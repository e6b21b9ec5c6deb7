"""Consecutive records in one state of delivery."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from operator import attrgetter
from typing import Final, NamedTuple


class RecordState(IntEnum):
    """The state of a record that was acquired at least once, as it is stored."""

    AVAILABLE = 0
    ACQUIRED = 1
    """Never stored."""
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """Given up, but not yet in the dead-letter topic of the group (KIP-1191)."""
    ARCHIVED = 4


AVAILABLE: Final = RecordState.AVAILABLE
ACQUIRED: Final = RecordState.ACQUIRED
ACKNOWLEDGED: Final = RecordState.ACKNOWLEDGED
ARCHIVING: Final = RecordState.ARCHIVING
ARCHIVED: Final = RecordState.ARCHIVED

BatchKey = tuple[int, int]
"""First and last offset of the records that were acquired together for the first time."""


class StoredSpan(NamedTuple):
    """A span in the stored state of a partition."""

    first: int
    last: int
    state: int
    deliveries: int


class Span:
    """Records from ``first`` to ``last``. A batch that is acquired and accepted whole is one span, always."""

    __slots__ = ("batch", "deadline_ms", "deliveries", "first", "last", "member", "state")

    def __init__(
        self, first: int, last: int, state: RecordState, deliveries: int, batch: BatchKey | None = None
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.deliveries = deliveries
        """How often the records were delivered."""
        self.batch = batch
        """What they were first acquired with; None once they are never delivered again."""
        self.member = ""
        """Who holds them; empty unless they are acquired."""
        self.deadline_ms = 0
        """When the lock of that member ends."""

    def split(self, offset: int) -> Span:
        """Cut off the records from ``offset`` on, and return them."""
        rest = Span(offset, self.last, self.state, self.deliveries, self.batch)
        rest.member, rest.deadline_ms = self.member, self.deadline_ms
        self.last = offset - 1
        return rest

    def lock(self, member: str, deadline_ms: int) -> None:
        """Deliver the records to a member."""
        self.state, self.member, self.deadline_ms = ACQUIRED, member, deadline_ms
        self.deliveries += 1

    def unlock(self, state: RecordState) -> None:
        """Take the records from the member."""
        self.state, self.member, self.deadline_ms = state, "", 0
        if state >= ACKNOWLEDGED:
            self.batch = None

    @property
    def is_done(self) -> bool:
        """Whether the group is done with the records."""
        return self.state >= ACKNOWLEDGED and self.state is not ARCHIVING

    def goes_on(self, other: Span) -> bool:
        """Whether the next span differs in its offsets only."""
        return (
            self.state is other.state
            and self.deliveries == other.deliveries
            and self.batch == other.batch
            and self.member == other.member
            and self.deadline_ms == other.deadline_ms
        )

    @property
    def stored(self) -> StoredSpan:
        """What a restart leaves: records that are held lose this delivery."""
        if self.state is ACQUIRED:
            return StoredSpan(self.first, self.last, AVAILABLE, self.deliveries - 1)
        return StoredSpan(self.first, self.last, self.state, self.deliveries)


first_of = attrgetter("first")


def merged(spans: Iterable[StoredSpan]) -> list[StoredSpan]:
    """The spans with equal neighbors joined, without those at the end that say nothing."""
    found: list[StoredSpan] = []
    for span in spans:
        if found and found[-1][2:] == span[2:]:
            found[-1] = found[-1]._replace(last=span.last)
        else:
            found.append(span)
    if found and not found[-1].state and not found[-1].deliveries:
        found.pop()
    return found


_STORED: Final = struct.Struct(">qqbh")


def packed(spans: Iterable[StoredSpan]) -> bytes:
    """The spans as they are stored."""
    return b"".join([_STORED.pack(*span) for span in spans])


def unpacked(stored: bytes) -> list[StoredSpan]:
    """The spans of a stored state."""
    return [StoredSpan(*values) for values in _STORED.iter_unpack(stored)]
