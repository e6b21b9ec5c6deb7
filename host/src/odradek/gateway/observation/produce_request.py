"""Records, batches and bytes of Produce requests, from the headers of their batches.

Records are skipped by their length, compressed or not. A request is nearly always one batch for one
partition, which lies at the same place as in the last request: `Produced.read` takes one comparison and one
lookup.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from odradek.gateway.observation.produce_fields import (
    BATCH_HEAD_BYTES,
    CLIENT_ID,
    FLEXIBLE,
    LOG_OVERHEAD,
    MAGIC,
    TWO_BYTES,
    UnusualRequest,
    after_tags,
    batch,
    compact_topic,
    long_length,
    partition_records,
    plain_topic,
    request_head,
    sized_batch,
    usual_batch,
    usual_partitions,
)

MAX_HELD: Final = 65_536
"""Bytes of an incomplete element. Names and tags are shorter; a request with longer ones is not counted."""


class Produced:
    """Sums of some Produce requests."""

    __slots__ = ("acks", "acks0", "batches", "bytes", "length_at", "prefix", "records")

    def __init__(self) -> None:
        self.records = 0
        self.batches = 0
        self.bytes = 0
        """Batches with their headers, compressed as sent."""
        self.acks0 = 0
        """Requests without a response."""
        self.prefix = b"\x80"
        """The bytes of the last request from the client id to the only partition's index. At first some that
        no request has."""
        self.length_at = 0
        """Position of the length of its records, from the API key on."""
        self.acks = 1
        """Of the last request."""

    def merge(self, other: Produced) -> None:
        """Add the sums of another object."""
        self.records += other.records
        self.batches += other.batches
        self.bytes += other.bytes
        self.acks0 += other.acks0

    def read(  # noqa: C901  straight-line: it runs for every Produce request
        self, version: int, head: bytes, at: int, size: int
    ) -> Callable[[bytes | memoryview], None] | None:
        """Count a request whose first bytes are ``head[at:]``.

        Returns:
            None if it is counted, or a reader that needs the whole frame from the API key on.
        """
        try:
            if not head.startswith(self.prefix, at + CLIENT_ID):
                if version >= FLEXIBLE and at + size <= len(head) and self.many(version, head, at, size):
                    return None
                walk = self.learn(version, head, at)
                if walk is not None:
                    return walk
            start = at + self.length_at
            first, second, batch_length, magic, records = usual_batch(head, start)
            if (
                version >= FLEXIBLE
                and first >= TWO_BYTES > second
                and first - TWO_BYTES + (second << 7) == batch_length + LOG_OVERHEAD + 1
                and magic == MAGIC
                and start + 2 + batch_length + LOG_OVERHEAD <= at + size
            ):
                self.records += records
                self.batches += 1
                self.bytes += batch_length + LOG_OVERHEAD
                if not self.acks:
                    self.acks0 += 1
                return None
            if version >= FLEXIBLE:
                length, start = long_length(head, start)
                batch_length, magic, records = batch(head, start)
                end = start + length - 1
            else:
                length, batch_length, magic, records = sized_batch(head, start)
                end = start + 4 + length
                length += 1
            if batch_length + LOG_OVERHEAD + 1 == length and magic == MAGIC and end <= at + size:
                self.records += records
                self.batches += 1
                self.bytes += length - 1
                if not self.acks:
                    self.acks0 += 1
                return None
        except (IndexError, struct.error, UnusualRequest):
            pass
        return ProduceWalk(self, version)

    def many(self, version: int, head: bytes, at: int, size: int) -> bool:
        """Count a complete request with several usual partitions; False if it is another one.

        Raises:
            UnusualRequest, IndexError, struct.error: It is malformed.
        """
        acks, position, topics = request_head(version, head, at)
        records = batches = size_bytes = 0
        end = at + size
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
        if not acks:
            self.acks0 += 1
        return True

    def learn(self, version: int, head: bytes, at: int) -> ProduceWalk | None:
        """Find the only partition of a request.

        Returns:
            None if it is found; a walk through the request if there is not exactly one.

        Raises:
            UnusualRequest, IndexError, struct.error: The bytes end before it, or are malformed.
        """
        acks, position, topics = request_head(version, head, at)
        topics_at = position
        if version >= FLEXIBLE:
            position, partitions = compact_topic(version, head, position)
        else:
            position, partitions = plain_topic(head, position)
        if topics != 1 or partitions != 1:
            walk = ProduceWalk(self, version)
            walk.begun(acks, topics)
            walk.skip = topics_at - at
            return walk
        self.prefix = bytes(head[at + CLIENT_ID : position])
        self.length_at = position + 4 - at
        self.acks = acks
        return None


class ProduceWalk:
    """Reads a Produce request in pieces, one element at a time; bytes of records are not looked at."""

    __slots__ = (
        "held", "partitions", "produced", "records_left", "skip", "step", "topics", "version"
    )  # fmt: skip

    def __init__(self, produced: Produced, version: int) -> None:
        self.produced = produced
        self.version = version
        self.held = b""
        """The beginning of an element whose rest has not arrived."""
        self.skip = 0
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
        """Everything before the first topic."""
        acks, position, topics = request_head(self.version, data, position)
        self.begun(acks, topics)
        return position

    def begun(self, acks: int, topics: int) -> None:
        """Everything before the first topic has been read."""
        if not acks:
            self.produced.acks0 += 1
        self.topics = topics
        self.step = self.topic if topics > 0 else None

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
