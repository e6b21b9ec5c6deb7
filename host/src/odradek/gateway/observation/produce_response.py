"""Error codes of partitions, and the throttle time, of Produce responses.

Nearly all responses are about one partition and say that all is well; they differ from the last one in
partition and offset only, which `ProduceAnswers` sees with three comparisons.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from odradek.gateway.produce_fields import (
    FLEXIBLE,
    TOPIC_IDS,
    UnusualRequest,
    after_tags,
    long_length,
    number,
    short,
)

NO_ERROR: Final = b"\0\0"
RECORD_ERRORS: Final = 8
"""The first version with errors of single records."""


class ProduceAnswer(NamedTuple):
    """The facts that a Produce response tells about its request."""

    throttle_ms: int
    errors: list[int]
    """The error code of each partition that has one."""
    index_at: int
    """Position of the only partition's index; 0 if there are more or fewer."""


class ProduceAnswers:
    """Reads the responses of one client and node."""

    __slots__ = ("error_at", "prefix", "size", "tail", "tail_at")

    def __init__(self) -> None:
        self.size = -1
        """Of the last response that was about one partition without an error."""
        self.prefix = b""
        """Its bytes after the correlation id, up to the partition's index."""
        self.tail = b""
        """Its bytes after the partition's offsets."""
        self.error_at = self.tail_at = 0
        """Positions from the correlation id on."""

    def read(self, version: int, head: bytes, at: int, size: int) -> ProduceAnswer | None:
        """Read a response whose correlation id is at ``at``.

        Returns:
            None if there is nothing to note, or if it is malformed or not all there.
        """
        if (
            size == self.size
            and head.startswith(self.prefix, at + 4)
            and head.startswith(NO_ERROR, at + self.error_at)
            and head.startswith(self.tail, at + self.tail_at)
        ):
            return None
        answer = read_answer(version, head, at, size)
        if answer is not None and answer.index_at and not answer.throttle_ms and not answer.errors:
            self.size = size
            self.prefix = bytes(head[at + 4 : answer.index_at])
            self.error_at = answer.index_at + 4 - at
            self.tail_at = answer.index_at + partition_bytes(version) - at
            self.tail = bytes(head[at + self.tail_at : at + size])
            return None
        return answer


def partition_bytes(version: int) -> int:
    """Bytes of a partition up to the errors of its records."""
    return 30 if version >= 5 else 22 if version >= 2 else 14


def read_answer(version: int, head: bytes, at: int, size: int) -> ProduceAnswer | None:
    """Read a response whose correlation id is at ``at``; None if it is malformed or not all there."""
    end = at + size
    try:
        if version >= FLEXIBLE:
            position, errors, index_at = compact_topics(version, head, after_tags(head, at + 4), end)
        else:
            position, errors, index_at = plain_topics(version, head, at + 4, end)
        if version < 1:
            return ProduceAnswer(0, errors, index_at)
        (throttle_ms,) = number(head, position)
    except (IndexError, struct.error, UnusualRequest):
        return None
    return ProduceAnswer(throttle_ms, errors, index_at)


def plain_topics(version: int, head: bytes, position: int, end: int) -> tuple[int, list[int], int]:
    """The end of the topics, the errors of their partitions, and the position of the only partition."""
    errors = []
    index_at = 0
    stride = partition_bytes(version)
    (topics,) = number(head, position)
    position += 4
    for _ in range(topics):
        (length,) = short(head, position)
        (partitions,) = number(head, position + 2 + length)
        position += 6 + length
        if topics == partitions == 1:
            index_at = position
        for _ in range(partitions):
            (code,) = short(head, position + 4)
            if code:
                errors.append(code)
            position += stride
            if version >= RECORD_ERRORS:
                position = after_record_errors(head, position)
            if position > end:
                raise IndexError
    return position, errors, index_at


def after_record_errors(head: bytes, position: int) -> int:
    """The end of a partition's errors of single records, and of its message."""
    (count,) = number(head, position)
    position += 4
    for _ in range(count):
        (length,) = short(head, position + 4)
        position += 6 + max(length, 0)
    (length,) = short(head, position)
    return int(position + 2 + max(length, 0))


def compact_topics(version: int, head: bytes, position: int, end: int) -> tuple[int, list[int], int]:
    """As `plain_topics`, in flexible versions."""
    errors = []
    index_at = 0
    topics, position = long_length(head, position)
    for _ in range(topics - 1):
        if version >= TOPIC_IDS:
            position += 16
        else:
            length, position = long_length(head, position)
            position += length - 1
        partitions, position = long_length(head, position)
        if topics == partitions == 2:
            index_at = position
        for _ in range(partitions - 1):
            (code,) = short(head, position + 4)
            if code:
                errors.append(code)
            position = after_compact_errors(head, position + 30)
            if position > end:
                raise IndexError
        position = after_tags(head, position)
    return position, errors, index_at


def after_compact_errors(head: bytes, position: int) -> int:
    """As `after_record_errors`, and after the partition's tags."""
    if head[position : position + 3] == b"\1\0\0":
        return position + 3
    count, position = long_length(head, position)
    for _ in range(count - 1):
        length, position = long_length(head, position + 4)
        position = after_tags(head, position + max(length - 1, 0))
    length, position = long_length(head, position)
    return after_tags(head, position + max(length - 1, 0))
