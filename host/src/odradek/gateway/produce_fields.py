"""Fields of Produce requests and responses, read without decoding the rest."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Final

TIMEOUT_BYTES: Final = 4
CLIENT_ID: Final = 8
"""Position of the client id in a request: after API key, version and correlation id."""
FLEXIBLE: Final = 9
TOPIC_IDS: Final = 13
MAGIC: Final = 2
LOG_OVERHEAD: Final = 12
"""Base offset and length of a batch."""
BATCH_HEAD_BYTES: Final = 61
"""A batch without records."""
LEAST_LENGTH: Final = BATCH_HEAD_BYTES - LOG_OVERHEAD
"""The length of a batch without records."""

short = struct.Struct(">h").unpack_from
number = struct.Struct(">i").unpack_from
partition_records = struct.Struct(">ii").unpack_from
# Base offset, length, leader epoch, magic, then the record count at 57.
batch = struct.Struct(">8xi4xb40xi").unpack_from
usual_partition = struct.Struct(">4xBB8xi4xb40xi")
"""The same from the partition's index on; the length of its records is a varint of two bytes."""
usual_head = usual_partition.unpack_from
TWO_BYTES: Final = 0x80
"""Added to a length by the first byte of its varint, because a second one follows."""


class UnusualRequest(Exception):
    """A request that is malformed, or whose encoding is longer than necessary."""


Fields = tuple[int, int, int, int, bytes, int, int, int, int, int]
OneBatch = tuple[Callable[[bytes, int], Fields], int, int, int]
"""The form of a request with one batch for one partition.

The first item unpacks the head of the request (length, API key, version, correlation id), the bytes from its
client id to its acks, the number of topics and of partitions, the length of the batch, its magic and the
number of its records. The second is how a count of one is written. The third counts the bytes of the request
that the length of the batch does not. The fourth is how many bytes are unpacked.
"""


@lru_cache(maxsize=1024)
def one_batch(flexible: bool, acks_end: int, topic_bytes: int, length_bytes: int) -> OneBatch:
    """The form of a request, by the end of its acks (from the API key on), and by the bytes of the topic's
    name or id and of the length of its records.
    """
    count, tags = ("B", 3) if flexible else ("i", 0)
    opening = f"{TIMEOUT_BYTES}x{count}{topic_bytes}x{count}4x{length_bytes}x"
    shape = struct.Struct(f">ihhi{acks_end - CLIENT_ID}s{opening}8xi4xb40xi")
    around = acks_end + struct.calcsize(f">{opening}") + LOG_OVERHEAD + tags
    return shape.unpack_from, 2 if flexible else 1, around, shape.size


NO_FORM: Final[OneBatch] = (struct.Struct(">ihhisiiibi").unpack_from, -1, 0, sys.maxsize)
"""No request has this form: there are never so many bytes."""


def topic_count(version: int, data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The position of the first topic, and the number of topics, after the acks at ``position``."""
    position += TIMEOUT_BYTES
    if version < FLEXIBLE:
        return position + 4, number(data, position)[0]
    topics, position = long_length(data, position)
    return position, topics - 1


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


def usual_partitions(
    data: bytes | memoryview, position: int, left: int, end: int
) -> tuple[int, int, int, int]:
    """Partitions of one batch below 16 kB, up to the first other one. Straight-line: it runs for each batch.

    Args:
        data: The request.
        position: The first partition.
        left: How many there are at most.
        end: The end of the request, or of the data.

    Returns:
        The end of the last of them, how many are left, and the records and bytes in them.
    """
    last = end - usual_partition.size
    records = size_bytes = 0
    while left and position <= last:
        first, second, batch_length, magic, count = usual_head(data, position)
        length = batch_length + LOG_OVERHEAD
        after = position + 6 + length
        if (
            first - TWO_BYTES + (second << 7) != length + 1
            or not first >= TWO_BYTES > second
            or magic != MAGIC
            or length < BATCH_HEAD_BYTES
            or after >= end
            or data[after]  # tags
        ):
            break
        records += count
        size_bytes += length
        left -= 1
        position = after + 1
    return position, left, records, size_bytes
