"""Responses of the usual form: no error, no throttle time, no tag, and fewer than 127 topics and partitions.

Nearly all responses to Produce and Fetch have it. They name no address, so that they pass without a walk. For
a small response a walk would cost more than everything else that the gateway does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from odradek.wire.errors import WireError
from odradek.wire.varint import read_varint

TOPIC_ID_BYTES: Final = 16
TOPIC_IDS: Final = 13
"""The first version of Produce with ids of topics."""
ONE_BYTE: Final = 128
"""Varints of one byte are below."""
LEAST_PRODUCE_BYTES: Final = 11
LEAST_FETCH_BYTES: Final = 17
ONE_TOPIC: Final = b"\0\2"
"""No tags in the header, and one topic."""
QUIET: Final = bytes(7)
"""No tags in the header, no throttle time, no error."""

# Error and aborted transactions of a partition, and the first bytes of the length of its records.
unpack_fetched: Callable[..., tuple[int, int, int, int]] = struct.Struct(">4xh24xB4xBB").unpack_from
FETCHED_BYTES: Final = 36
"""Up to the first byte of the length."""


@lru_cache(maxsize=ONE_BYTE)
def produced(count: int) -> tuple[Callable[[bytes, int], tuple[int, ...]], tuple[int, ...], int]:
    """The partitions of a topic of Produce, if their count is written as this byte.

    Returns:
        A function that unpacks their count and, of each partition, its error, errors of records, message and
        tags, then the tags of the topic, the throttle time and the tags of the response; what it returns if
        all is well; and the bytes that it reads.
    """
    shape = struct.Struct(f">B{'4xh24xBBB' * (count - 1)}BiB")
    return shape.unpack_from, (count, *(0, 1, 0, 0) * (count - 1), 0, 0, 0), shape.size


def usual_produce(version: int, data: bytes, at: int, end: int) -> bool:
    """Whether the response to Produce v10 to v13 between two positions has the usual form, and one topic.

    The first position is that of its correlation id.
    """
    if end - at < LEAST_PRODUCE_BYTES or not data.startswith(ONE_TOPIC, at + 4):
        return False
    # The length of a name is one byte here: with two, the response would be longer than this says.
    partitions = at + 6 + (TOPIC_ID_BYTES if version >= TOPIC_IDS else data[at + 6])
    if partitions >= end or not 0 < data[partitions] < ONE_BYTE:
        return False
    unpack, usual, size = produced(data[partitions])
    return partitions + size == end and unpack(data, partitions) == usual


def usual_fetch(_version: int, data: bytes, at: int, end: int) -> bool:  # noqa: C901  straight-line
    """The same for Fetch v16 to v18, with any number of topics.

    The aborted transactions are null or empty, as the isolation level wants.
    """
    if end - at < LEAST_FETCH_BYTES or not data.startswith(QUIET, at + 4):
        return False
    topics, position = data[at + 15], at + 16
    if topics >= ONE_BYTE:
        return False
    try:
        for _ in range(1, topics):
            position += TOPIC_ID_BYTES + 1
            partitions = data[position - 1]
            if partitions >= ONE_BYTE:
                return False
            for _ in range(1, partitions):
                error, aborted, records, more = unpack_fetched(data, position)
                if error or aborted > 1:
                    return False
                position += FETCHED_BYTES
                if records < ONE_BYTE:
                    position += records - 1 if records else 0
                elif more < ONE_BYTE:
                    position += records - ONE_BYTE + (more << 7)
                else:
                    records, position = read_varint(data, position - 1)
                    position += records - 1
                if position >= end or data[position]:
                    return False
                position += 1
            if position >= end or data[position]:
                return False
            position += 1
    except (IndexError, WireError, struct.error):
        return False
    return position + 1 == end and not data[position]
