"""The positions of one forwarder in the log, and its accounts.

Used on the forwarder's thread; any thread may call `LogCursor.offered` and `unread` under the runner's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.delivery.delivery_ledger import count
from odradek.delivery.spooled_record import MALFORMED, RecordFormat, SpooledRecord
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
EMPTY = "empty"
"""The record has no push."""
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
    format: RecordFormat = field(default_factory=RecordFormat)
    origin: dict[int, int] = field(init=False)
    """The positions at which the accounts begin."""
    beyond: int = 0
    """Pushes that were offered besides one for each offset from ``origin`` on: those that come a second time
    because an operator moved the offset back, those that were read in partitions that other processes have
    now, and the second and further ones of a record with several clients."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Records that will not be delivered, by reason."""

    def __post_init__(self) -> None:
        self.origin = dict(self.expected)

    def offered(self, ends: Mapping[int, int]) -> int:
        """Records to deliver, up to the given ends of the partitions, or up to the position if an end is not
        known. A record that was not read counts as one.
        """
        expected = self.expected
        return self.beyond + sum(
            ends.get(index, expected.get(index, begin)) - begin for index, begin in self.origin.items()
        )

    def unread(self, ends: Mapping[int, int]) -> int:
        """Records after the positions, up to the given ends."""
        return sum(ends.get(index, at) - at for index, at in self.expected.items())

    def take(self, chunk: Chunk) -> list[SpooledRecord]:
        """The pushes of the records of a chunk that were not read before. The position moves after them.

        Raises:
            WireError: The chunk begins with bytes that are no batch. If they come later, the pushes before
                them are returned, and the next chunk begins with them.
        """
        index = chunk.partition
        self.expected.setdefault(index, 0)
        self.origin.setdefault(index, 0)
        self.pass_over(index, chunk.start, EXPIRED)
        found: list[SpooledRecord] = []
        try:
            for pushes in self.opened(chunk):
                offset = pushes[0].original.offset
                if offset >= self.expected[index]:
                    self.pass_over(index, offset, EXPIRED)
                    found += pushes
                    self.beyond += len(pushes) - 1
                    self.expected[index] += 1
        except WireError:
            if not found:
                raise
        return found

    def opened(self, chunk: Chunk) -> Iterator[list[SpooledRecord]]:
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

    def pushes(self, chunk: Chunk, found: list[Record]) -> Iterator[list[SpooledRecord]]:
        """The pushes of each record of one batch. Of the malformed ones that were not read before, the first
        few.
        """
        index, malformed = chunk.partition, 0
        for record in found:
            offset, reason = record.offset, MALFORMED
            if malformed < self.max_malformed or self.format.may_be_push(record):
                read = self.format.spooled(index, record, chunk.topic_id)
                is_new_fault = offset >= self.expected[index] and any(each.fault for each in read)
                malformed += is_new_fault
                if read and not (is_new_fault and malformed > self.max_malformed):
                    yield read
                    continue
                reason = MALFORMED if read else EMPTY
            self.pass_over(index, offset, EXPIRED)
            self.pass_over(index, offset + 1, reason)

    def pass_over(self, index: int, offset: int, reason: str) -> None:
        """Move the position to this offset: nothing before it will be read."""
        gap = offset - self.expected[index]
        if gap > 0:
            count(self.dropped, reason, gap)
            self.expected[index] = offset

    def move(self, positions: Mapping[int, int], withdrawn: Sequence[SpooledRecord] = ()) -> None:
        """Continue at other positions.

        Args:
            positions: By partition. The others stay where they are, or go back to their withdrawn records.
            withdrawn: All pushes of records that had been read and are not taken.
        """
        first: dict[int, int] = {}
        for push in withdrawn:
            first.setdefault(push.partition, push.original.offset)
        records = sum(push.is_first for push in withdrawn)
        self.beyond -= len(withdrawn) - records
        back = -records
        for index, offset in (first | dict(positions)).items():
            back += self.expected.get(index, 0) - offset
            self.expected[index] = offset
            self.origin.setdefault(index, 0)
        if back >= 0:
            self.beyond += back
        else:
            count(self.dropped, SKIPPED, -back)

    def assign(self, gone: Collection[int], added: Mapping[int, int]) -> None:
        """Begin in partitions that were assigned, and forget others: another process has them now.

        Args:
            gone: Partitions of which all records that were read have been taken.
            added: Positions by partition.
        """
        for index in gone:
            self.beyond += self.expected.pop(index, 0) - self.origin.pop(index, 0)
        self.expected.update(added)
        self.origin.update(added)

    def start_over(self, old_ends: Mapping[int, int], positions: Mapping[int, int], withdrawn: int) -> None:
        """Begin in a topic that was deleted and created again.

        Args:
            old_ends: Of the topic that is gone.
            positions: Where to begin in the new one.
            withdrawn: Pushes that had been read and are not taken.
        """
        count(self.dropped, DELETED, self.unread(old_ends) + withdrawn)
        self.beyond = self.offered(old_ends)
        self.expected = dict(positions)
        self.origin = dict(positions)
