"""Records, batches and bytes of Produce requests, from the headers of their batches.

Records are skipped by their length, compressed or not. A request is nearly always one batch for one
partition, in the same form as the last one: then its fields are in known places.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from odradek.gateway.produce_beginning import ProduceBeginning
from odradek.gateway.produce_fields import (
    BATCH_HEAD_BYTES,
    FLEXIBLE,
    LEAST_LENGTH,
    LOG_OVERHEAD,
    MAGIC,
    OneBatch,
    UnusualRequest,
    after_tags,
    batch,
    compact_topic,
    long_length,
    number,
    one_batch,
    partition_records,
    plain_topic,
    topic_count,
    usual_partitions,
)

LENGTH_BYTES: Final = 4
MOST_TOPIC_BYTES: Final = 256
"""Names of topics are shorter; forms with longer ones are not made."""
MAX_HELD: Final = 65_536
"""Bytes of an incomplete element. Names and tags are shorter; a request with longer ones is not counted."""


class Produced:
    """Sums of some Produce requests."""

    __slots__ = ("acks0", "batches", "bytes", "records")

    def __init__(self) -> None:
        self.records = 0
        self.batches = 0
        self.bytes = 0
        """Batches with their headers, compressed as sent."""
        self.acks0 = 0
        """Requests without a response."""

    def merge(self, other: Produced) -> None:
        """Add the sums of another object."""
        self.records += other.records
        self.batches += other.batches
        self.bytes += other.bytes
        self.acks0 += other.acks0

    def read(self, version: int, data: bytes, at: int, beginning: ProduceBeginning) -> ProduceWalk | None:
        """Count the records of a request.

        Args:
            version: Of the request.
            data: Bytes that hold the request, or at least its beginning.
            at: Position of its length.
            beginning: Has read it. Gets the form of a request with one batch.

        Returns:
            None if they are counted, or a reader that needs the rest of the request.
        """
        if self.one(beginning.form, data, at, beginning.known):
            return None
        after = at + LENGTH_BYTES + number(data, at)[0]
        if self.read_other(version, data, at, after, beginning):
            return None
        walk = ProduceWalk(self, version, beginning.end)
        walk(memoryview(data)[at + LENGTH_BYTES : after])
        return walk if after > len(data) else None

    def one(self, form: OneBatch, data: bytes, at: int, known: bytes) -> bool:
        """Count a request with one batch; False if it has another form, or its batch has not arrived.

        `ProduceRequests.take_usual` has the same conditions in its loop, where a call would cost too much.
        """
        unpack, one, around, least = form
        if at + least > len(data):
            return False
        size, _, _, _, begin, topics, partitions, batch_length, magic, records = unpack(data, at)
        # A topic with a longer or shorter name moves the batch's length, which then does not fit.
        if not (
            begin == known
            and topics == partitions == one
            and LEAST_LENGTH <= batch_length == size - around
            and magic == MAGIC
        ):
            return False
        self.records += records
        self.batches += 1
        self.bytes += batch_length + LOG_OVERHEAD
        return True

    def read_other(self, version: int, data: bytes, at: int, after: int, beginning: ProduceBeginning) -> bool:
        """Count a complete request with several usual partitions, or find the form of one with one batch.

        Returns:
            Whether it is counted.
        """
        try:
            position, topics = topic_count(version, data, at + LENGTH_BYTES + beginning.end)
            is_whole = version >= FLEXIBLE and after <= len(data)
            if is_whole and self.many(version, data, position, topics, after):
                return True
            form = form_of(version, data, beginning.end, position, topics)
        except (IndexError, struct.error, UnusualRequest):
            return False
        if form is None or not self.one(form, data, at, beginning.known):
            return False
        beginning.form = form
        return True

    def many(self, version: int, head: bytes, position: int, topics: int, end: int) -> bool:
        """Count a complete request with several usual partitions; False if it is another one.

        Raises:
            UnusualRequest, IndexError, struct.error: It is malformed.
        """
        records = batches = size_bytes = 0
        for _ in range(topics):
            position, partitions = compact_topic(version, head, position)
            if topics == partitions == 1:
                return False
            position, left, more, more_bytes = usual_partitions(head, position, partitions, end)
            if left or head[position]:
                return False
            records, size_bytes = records + more, size_bytes + more_bytes
            batches += partitions
            position += 1
        if position + 1 != end or head[position]:
            return False
        self.records += records
        self.batches += batches
        self.bytes += size_bytes
        return True


def form_of(version: int, head: bytes, acks_end: int, topic: int, topics: int) -> OneBatch | None:
    """The form of a request with one partition, whose topic is at a position; None if it has not exactly one.

    Raises:
        UnusualRequest, IndexError, struct.error: The bytes end before its records, or are malformed.
    """
    flexible = version >= FLEXIBLE
    position, partitions = compact_topic(version, head, topic) if flexible else plain_topic(head, topic)
    if topics != 1 or partitions != 1:
        return None
    count_bytes, length_bytes = 4, 4
    if flexible:
        count_bytes = 1
        length_bytes = long_length(head, position + 4)[1] - (position + 4)
    topic_bytes = position - count_bytes - topic
    if topic_bytes > MOST_TOPIC_BYTES:
        return None
    return one_batch(flexible, acks_end, topic_bytes, length_bytes)


class ProduceWalk:
    """Reads a Produce request in pieces, one element at a time; bytes of records are not looked at."""

    __slots__ = (
        "held", "partitions", "produced", "records_left", "skip", "step", "topics", "version"
    )  # fmt: skip

    def __init__(self, produced: Produced, version: int, acks_end: int) -> None:
        self.produced = produced
        self.version = version
        self.held = b""
        """The beginning of an element whose rest has not arrived."""
        self.skip = acks_end
        """Bytes to pass before the next element."""
        self.topics = 0
        self.partitions = 0
        self.records_left = 0
        """Bytes of the partition's batches that have not been counted."""
        self.step: Callable[[bytes | memoryview, int], int] | None = self.begin

    def __call__(self, piece: bytes | memoryview) -> None:
        """Take the next bytes."""
        if self.step is None or self.skip >= len(piece):
            self.skip -= len(piece)
            return
        data = piece[self.skip :]
        if self.held:
            data = self.held + bytes(data)
        position = self.skip = 0
        size = len(data)
        try:
            while self.step is not None:
                position = self.step(data, position)
                if position >= size:
                    self.skip, position = position - size, size
                    break
        except (IndexError, struct.error):
            pass
        except UnusualRequest:
            self.step = None
        self.held = bytes(data[position:])
        if self.step is None or len(self.held) > MAX_HELD:
            self.step, self.held = None, b""

    def begin(self, data: bytes | memoryview, position: int) -> int:
        """Everything between the acks and the first topic."""
        position, self.topics = topic_count(self.version, data, position)
        self.step = self.topic if self.topics > 0 else None
        return position

    def topic(self, data: bytes | memoryview, position: int) -> int:
        """The head of a topic."""
        if self.version >= FLEXIBLE:
            position, self.partitions = compact_topic(self.version, data, position)
        else:
            position, self.partitions = plain_topic(data, position)
        self.topics -= 1
        self.next_partition()
        return position

    def next_partition(self) -> None:
        """Set the step after a partition, or after the head of a topic."""
        if self.partitions > 0:
            self.step = self.partition
        elif self.version >= FLEXIBLE:
            self.step = self.topic_tags
        else:
            self.step = self.topic if self.topics > 0 else None

    def topic_tags(self, data: bytes | memoryview, position: int) -> int:
        """The tags of a topic."""
        position = after_tags(data, position)
        self.step = self.topic if self.topics > 0 else None
        return position

    def partition(self, data: bytes | memoryview, position: int) -> int:
        """As many usual partitions as there are, or the head of one."""
        if self.version >= FLEXIBLE:
            after = self.usual_partitions(data, position)
            if after > position:
                self.next_partition()
                return after
            length, position = long_length(data, position + 4)
            self.records_left = max(length - 1, 0)
        else:
            _, length = partition_records(data, position)
            position += 8
            self.records_left = max(length, 0)
        self.after_batches()
        return position

    def usual_partitions(self, data: bytes | memoryview, position: int) -> int:
        """Count usual partitions, up to the first other one. Returns the end of the last of them."""
        after, left, records, size_bytes = usual_partitions(data, position, self.partitions, len(data))
        self.produced.records += records
        self.produced.batches += self.partitions - left
        self.produced.bytes += size_bytes
        self.partitions = left
        return after

    def after_batches(self) -> None:
        """Set the step after the head of a partition, or after a batch."""
        if self.records_left > 0:
            self.step = self.batch
        elif self.version >= FLEXIBLE:
            self.step = self.partition_tags
        else:
            self.partitions -= 1
            self.next_partition()

    def partition_tags(self, data: bytes | memoryview, position: int) -> int:
        """The tags of a partition."""
        position = after_tags(data, position)
        self.partitions -= 1
        self.next_partition()
        return position

    def batch(self, data: bytes | memoryview, position: int) -> int:
        """A batch: its header is read, its records are passed. Old message sets count as bytes only."""
        produced = self.produced
        magic = data[position + 16] if self.records_left > 16 else 0
        if magic != MAGIC or self.records_left < BATCH_HEAD_BYTES:
            length = self.records_left
        else:
            batch_length, _, records = batch(data, position)
            length = batch_length + LOG_OVERHEAD
            if length < BATCH_HEAD_BYTES or length > self.records_left:
                raise UnusualRequest
            produced.records += records
            produced.batches += 1
        produced.bytes += length
        self.records_left -= length
        self.after_batches()
        return position + length
