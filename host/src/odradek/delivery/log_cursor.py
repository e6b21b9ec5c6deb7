"""The positions of one forwarder in the log, and its accounts.

Used on the forwarder's thread; any thread may call `LogCursor.offered` and `unread` under the runner's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.delivery.delivery_ledger import count
from odradek.delivery.spooled_record import MALFORMED, SpooledRecord, may_be_push, spooled
from odradek.wire.errors import WireError
from odradek.wire.record import Record
from odradek.wire.record_batch import record_batches, records

EXPIRED = "expired"
"""Retention or DeleteRecords removed them first."""
SKIPPED = "skipped"
"""An operator moved the group's offset forward."""
DELETED = "deleted"
"""The topic was deleted."""
UNREADABLE = "unreadable"
"""The batch cannot be opened."""
CONTROL = "control"
"""The marker at the end of a transaction: not a client's record."""
ABORTED = "aborted"
"""The transaction of the record was aborted."""
MAX_BATCH_BYTES = 256 << 20
MAX_MALFORMED = 100
"""Default of ``malformed.max.records``."""


class Chunk(NamedTuple):
    """The bytes read from one partition."""

    partition: int
    start: int
    """The first offset that was read: later than asked for if records have expired."""
    data: bytes
    """Whole batches; the first may begin before ``start``."""
    topic_id: str = ""
    aborted: frozenset[int] = frozenset()
    """The base offsets of batches whose transaction was aborted."""


@dataclass(slots=True, eq=False)
class LogCursor:
    """One position per partition: the next offset to be read."""

    expected: dict[int, int]
    max_malformed: int = MAX_MALFORMED
    """Malformed records of one batch that become dead letters. A dead letter takes a hundred times as long as
    a skip, so the others are only counted: junk must not hold up the pushes after it.
    """
    origin: dict[int, int] = field(init=False)
    """The positions at which the accounts begin."""
    rewound: int = 0
    """Records that come a second time because an operator moved the offset back, and those that were read in
    partitions that other processes have now."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Records that will not be delivered, by reason."""

    def __post_init__(self) -> None:
        self.origin = dict(self.expected)

    def offered(self, ends: Mapping[int, int]) -> int:
        """Records to deliver, up to the given ends of the partitions, or up to the position if an end is not
        known.
        """
        expected = self.expected
        return self.rewound + sum(
            ends.get(index, expected.get(index, begin)) - begin for index, begin in self.origin.items()
        )

    def unread(self, ends: Mapping[int, int]) -> int:
        """Records after the positions, up to the given ends."""
        return sum(ends.get(index, at) - at for index, at in self.expected.items())

    def take(self, chunk: Chunk) -> list[SpooledRecord]:
        """The records of a chunk that were not read before. The position moves after them."""
        index = chunk.partition
        self.expected.setdefault(index, 0)
        self.origin.setdefault(index, 0)
        self.pass_over(index, chunk.start, EXPIRED)
        found = []
        for record in self.opened(chunk):
            if record.original.offset >= self.expected[index]:
                self.pass_over(index, record.original.offset, EXPIRED)
                found.append(record)
                self.expected[index] += 1
        return found

    def opened(self, chunk: Chunk) -> Iterator[SpooledRecord]:
        """Read batch by batch. A damaged batch is skipped: it must not hold up the batches after it."""
        for header, batch in record_batches(chunk.data):
            reason = CONTROL if header.is_control else EXPIRED
            if header.base_offset in chunk.aborted:
                reason = ABORTED
            try:
                found = [] if reason != EXPIRED else list(records(batch, header, MAX_BATCH_BYTES))
            except WireError:
                found, reason = [], UNREADABLE
            if found:
                yield from self.pushes(chunk, found)
            # what has no record at its end, too, or the same batch would be read for ever
            self.pass_over(chunk.partition, header.next_offset, reason)

    def pushes(self, chunk: Chunk, found: list[Record]) -> Iterator[SpooledRecord]:
        """The records of one batch. Of the malformed ones that were not read before, the first few."""
        index, malformed = chunk.partition, 0
        for record in found:
            offset = record.offset
            if malformed < self.max_malformed or may_be_push(record):
                read = spooled(index, record, chunk.topic_id)
                if read.fault is None or offset < self.expected[index]:
                    yield read
                    continue
                malformed += 1
                if malformed <= self.max_malformed:
                    yield read
                    continue
            self.pass_over(index, offset, EXPIRED)
            self.pass_over(index, offset + 1, MALFORMED)

    def pass_over(self, index: int, offset: int, reason: str) -> None:
        """Move the position to this offset: nothing before it will be read."""
        gap = offset - self.expected[index]
        if gap > 0:
            count(self.dropped, reason, gap)
            self.expected[index] = offset

    def move(self, positions: Mapping[int, int], withdrawn: int) -> None:
        """Continue at other positions.

        Args:
            positions: By partition; the others stay where they are.
            withdrawn: Records that had been read and are not taken: they lie before the positions.
        """
        back = -withdrawn
        for index, offset in positions.items():
            back += self.expected.get(index, 0) - offset
            self.expected[index] = offset
            self.origin.setdefault(index, 0)
        if back >= 0:
            self.rewound += back
        else:
            count(self.dropped, SKIPPED, -back)

    def assign(self, gone: Collection[int], added: Mapping[int, int]) -> None:
        """Begin in partitions that were assigned, and forget others: another process has them now.

        Args:
            gone: Partitions of which all records that were read have been taken.
            added: Positions by partition.
        """
        for index in gone:
            self.rewound += self.expected.pop(index, 0) - self.origin.pop(index, 0)
        self.expected.update(added)
        self.origin.update(added)

    def start_over(self, old_ends: Mapping[int, int], positions: Mapping[int, int], withdrawn: int) -> None:
        """Begin in a topic that was deleted and created again.

        Args:
            old_ends: Of the topic that is gone.
            positions: Where to begin in the new one.
            withdrawn: Records that had been read and are not taken.
        """
        count(self.dropped, DELETED, self.unread(old_ends) + withdrawn)
        self.rewound = self.offered(old_ends)
        self.expected = dict(positions)
        self.origin = dict(positions)
