"""What a fetch asks of a share partition, and what it gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from odradek.share.span import Span

ISOLATED_FROM: Final = 3
"""From this limit of deliveries on, a record comes alone the last time."""


class Acquired(NamedTuple):
    """Records that a member has got, and how often they were delivered."""

    first: int
    last: int
    deliveries: int


class LogBatch(NamedTuple):
    """A record batch of the log."""

    first: int
    last: int
    aborted: bool = False
    """The records are those of an aborted transaction, which the group does not read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of a group, at the moment of a request."""

    lock_ms: int = 30_000
    """``share.record.lock.duration.ms``"""
    most_deliveries: int = 5
    """``share.delivery.count.limit``"""
    in_flight: int = 2_000
    """``share.partition.max.record.locks``"""
    may_renew: bool = True
    """``share.renew.acknowledge.enable``"""
    has_dead_letters: bool = False
    """Whether records that are given up go to a topic first (KIP-1191)."""

    @property
    def narrow_from(self) -> int:
        """After so many deliveries a fetch gets fewer records of a batch each time."""
        return max(2, (self.most_deliveries + 1) // 2)

    def room(self, span: Span) -> int | None:
        """How many records of a batch that failed often come at once; None for all. One bad record cannot
        take its neighbors to the limit.
        """
        if span.deliveries < self.narrow_from or span.batch is None:
            return None
        if span.deliveries == self.most_deliveries - 1 and self.most_deliveries >= ISOLATED_FROM:
            return 1
        first, last = span.batch
        return max(1, last - first + 1 >> span.deliveries - self.narrow_from + 1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one fetch asks for."""

    max_records: int
    batch_size: int = 1 << 31
    strict: bool = False
    """Never more records than asked for, even if that cuts a batch (KIP-1206)."""


@dataclass(slots=True)
class Portion:
    """What a fetch may still get of records that were delivered before."""

    left: int
    """Records of the whole fetch."""
    strict: bool
    limits: Limits
    narrowed: tuple[object, int] | None = None
    """The batch and the deliveries of records that come few at a time, and with nothing else."""
    room: int = 0
    """How many more of them."""
    is_empty: bool = True

    def of(self, span: Span) -> int:
        """The most records of the next span; 0 if the fetch gets nothing more."""
        if self.left <= 0:
            return 0
        key = (span.batch, span.deliveries)
        if self.narrowed != key:
            room = self.limits.room(span)
            if not self.is_empty and (room is not None or self.narrowed is not None):
                return 0
            if room is not None:
                self.room, self.narrowed = room, key
        most = span.last - span.first + 1
        if self.narrowed is not None:
            most = min(most, self.room)
        return min(most, self.left) if self.strict else most

    def took(self, records: int) -> None:
        """The fetch got records of the span."""
        self.is_empty = False
        self.left, self.room = self.left - records, self.room - records

    @property
    def rest(self) -> int:
        """The most records that may follow for the first time."""
        return self.left if self.narrowed is None else 0


def ends(read: Sequence[LogBatch], first: int, last: int, batch_size: int) -> Iterator[int]:
    """The last offsets of the pieces in which records are delivered: each has at least ``batch_size``
    records, and ends with a batch of the log.
    """
    if last - first >= batch_size:
        for batch in read:
            if batch.first > last:
                break
            if batch.first - first >= batch_size:
                yield batch.first - 1
                first = batch.first
    yield last
