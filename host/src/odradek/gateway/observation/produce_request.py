"""Records, batches and bytes of Produce requests, from the headers of their batches.

Records are skipped by their length, compressed or not. A request is nearly always one batch for one
partition, which lies at the same place as in the last request: `known` takes one comparison and one lookup.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

MAX_HELD: Final = 65_536
"""Bytes of an incomplete element. Names and tags are shorter; a request with longer ones is not counted."""
CLIENT_ID: Final = 8
"""Position of the client id's length: after API key, version and correlation id."""
FLEXIBLE: Final = 9
TOPIC_IDS: Final = 13
TRANSACTIONAL: Final = 3
MAGIC: Final = 2
LOG_OVERHEAD: Final = 12
"""Base offset and length of a batch."""
BATCH_HEAD_BYTES: Final = 61
"""A batch without records."""

short = struct.Struct(">h").unpack_from
number = struct.Struct(">i").unpack_from
acks_and_topics = struct.Struct(">hii").unpack_from
acks_timeout = struct.Struct(">hi").unpack_from
partition_records = struct.Struct(">ii").unpack_from
# Base offset, length, leader epoch, magic, then the record count at 57.
batch = struct.Struct(">8xi4xb40xi").unpack_from
# The length of the records before it, a varint of two bytes.
usual_batch = struct.Struct(">BB8xi4xb40xi").unpack_from
usual_partition = struct.Struct(">4xBB8xi4xb40xi")
"""The same from the partition's index on."""
usual_head = usual_partition.unpack_from
TWO_BYTES: Final = 0x80
"""Added to a length by the first byte of its varint, because a second one follows."""
# The same, int32.
sized_batch = struct.Struct(">i8xi4xb40xi").unpack_from


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


class UnusualRequest(Exception):
    """A request that is malformed, or whose encoding is longer than necessary."""


def request_head(version: int, data: bytes | memoryview, at: int) -> tuple[int, int, int]:
    """Acks, the position of the first topic, and the number of topics."""
    (length,) = short(data, at + CLIENT_ID)
    position = at + CLIENT_ID + 2 + max(length, 0)
    if version < FLEXIBLE:
        if version >= TRANSACTIONAL:
            (length,) = short(data, position)
            position += 2 + max(length, 0)
        acks, _, topics = acks_and_topics(data, position)
        return acks, position + 10, topics
    position = after_tags(data, position)
    length, position = long_length(data, position)
    position += max(length - 1, 0)
    acks, _ = acks_timeout(data, position)
    topics, position = long_length(data, position + 6)
    return acks, position, topics - 1


def plain_topic(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The position of a topic's first partition, and the number of partitions."""
    (length,) = short(data, position)
    position += 2 + max(length, 0)
    (partitions,) = number(data, position)
    return position + 4, partitions


def compact_topic(version: int, data: bytes | memoryview, position: int) -> tuple[int, int]:
    """As `plain_topic`, in flexible versions."""
    if version >= TOPIC_IDS:
        position += 16
    else:
        length, position = long_length(data, position)
        position += max(length - 1, 0)
    partitions, position = long_length(data, position)
    return position, partitions - 1


def long_length(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes, and its end."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise UnusualRequest


def after_tags(data: bytes | memoryview, position: int) -> int:
    """The end of a section of tagged fields."""
    count, position = long_length(data, position)
    for _ in range(count):
        _, position = long_length(data, position)
        length, position = long_length(data, position)
        position += length
        if position > len(data):
            raise IndexError
    return position


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
        """Partitions of one batch below 16 kB, up to the first other one. Straight-line: it runs often.

        Returns:
            The end of the last of them.
        """
        last, left = len(data) - usual_partition.size, self.partitions
        records = size_bytes = 0
        while left and position <= last:
            first, second, batch_length, magic, count = usual_head(data, position)
            length = batch_length + LOG_OVERHEAD
            end = position + 6 + length
            if (
                first - TWO_BYTES + (second << 7) != length + 1
                or not first >= TWO_BYTES > second
                or magic != MAGIC
                or length < BATCH_HEAD_BYTES
                or end >= len(data)
                or data[end]  # tags
            ):
                break
            records += count
            size_bytes += length
            left -= 1
            position = end + 1
        self.produced.records += records
        self.produced.batches += self.partitions - left
        self.produced.bytes += size_bytes
        self.partitions = left
        return position

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
