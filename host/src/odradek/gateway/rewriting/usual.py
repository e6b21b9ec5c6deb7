"""Responses of the usual form: one partition, without an error, a throttle time, or a tag.

Nearly all responses to Produce and Fetch have it. They name no address, so that they pass without a walk. For
a small response a walk would cost more than everything else that the gateway does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from odradek.wire.errors import WireError
from odradek.wire.varint import read_varint

TOPIC_ID_BYTES: Final = 16
TOPIC_IDS: Final = 13
"""The first version of Produce with ids of topics."""
ONE_TOPIC: Final = b"\0\2"
"""No tags in the header, and one topic."""
LEAST_PRODUCE_BYTES: Final = 47

# Partitions, error, errors of records, message, tags of the partition and of the topic, throttle time, tags.
produced = struct.Struct(">B4xh24xBBBBiB")
USUAL_PRODUCE: Final = (2, 0, 1, 0, 0, 0, 0, 0)
# Tags, throttle time, error, topics, partitions, error of the partition, aborted transactions.
fetched = struct.Struct(">4xBih4xB16xB4xh24xB4x")
USUAL_FETCH: Final = ((0, 0, 0, 2, 2, 0, 0), (0, 0, 0, 2, 2, 0, 1))
"""The aborted transactions are null or empty, as the isolation level wants."""
EMPTY_FETCH_BYTES: Final = 17
QUIET: Final = bytes(7)
"""No tags in the header, no throttle time, no error."""
NO_TOPIC: Final = b"\1\0"
NO_TAGS: Final = bytes(3)
"""Of the partition, the topic and the response."""

unpack_produced: Callable[..., tuple[int, ...]] = produced.unpack_from
unpack_fetched: Callable[..., tuple[int, ...]] = fetched.unpack_from


def usual_produce(version: int, data: bytes, at: int, end: int) -> bool:
    """Whether the response to Produce v10 to v13 between two positions has the usual form.

    The first position is that of its correlation id.
    """
    if end - at < LEAST_PRODUCE_BYTES or not data.startswith(ONE_TOPIC, at + 4):
        return False
    # The length of a name is one byte here: with two, the response would be longer than this says.
    partitions = at + 6 + (TOPIC_ID_BYTES if version >= TOPIC_IDS else data[at + 6])
    return partitions + produced.size == end and unpack_produced(data, partitions) == USUAL_PRODUCE


def usual_fetch(_version: int, data: bytes, at: int, end: int) -> bool:
    """The same for Fetch v16 to v18."""
    if end - at == EMPTY_FETCH_BYTES:  # a fetch session without news
        return data.startswith(QUIET, at + 4) and data.startswith(NO_TOPIC, end - len(NO_TOPIC))
    records = at + fetched.size
    if records >= end or unpack_fetched(data, at) not in USUAL_FETCH:
        return False
    try:
        size, records = read_varint(data, records)
    except (IndexError, WireError):
        return False
    return records + max(size - 1, 0) + len(NO_TAGS) == end and data.startswith(NO_TAGS, end - len(NO_TAGS))
