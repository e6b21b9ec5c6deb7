"""Walks over responses with many partitions, up to the endpoints at their end.

A walk is a generator that gets windows of the response and asks for the next one by yielding how far it has
come, which may be beyond the window: records are skipped without being looked at. Each time it gets a window
and the last position in it from which `ATOM_BYTES` can be read, or the end of the response. It returns the
position of the end part. Between two looks at ``limit`` a walk reads at most `ATOM_BYTES`.

The loops are straight-line, because a partition must cost less than a microsecond.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import Protocol

from odradek.gateway.rewriting.fields import int16_at
from odradek.wire.varint import read_varint, tag_disorder, too_many_tags

ATOM_BYTES = 64
MAX_TAGS = 16
"""The most tags of a topic or partition. Kafka 4.4 has three at most."""

Window = tuple[bytes, int]
Walk = Generator[int, Window, int]
PartitionWalk = Generator[int, Window, tuple[bytes, int, int]]
"""Part of a walk. Returns the window, its limit and the position."""

throttle_at = struct.Struct(">i").unpack_from
throttle_and_error_at = struct.Struct(">ih").unpack_from


class Noted(Protocol):
    """The fields that a walk reads on its way."""

    error_code: int | None
    throttle_ms: int | None


Walker = Callable[[Noted], Walk]


def produce_walk(topic_id: bool) -> Walker:  # noqa: C901  one loop without calls is what makes it fast
    """Return the walk of Produce v10 to v13; topics have an id from v13 on, a name before."""

    def walk(noted: Noted) -> Walk:  # noqa: C901  likewise
        w, limit = yield 0
        w, limit, at = yield from tags(w, limit, 4)
        topics, at = read_varint(w, at)
        noted.error_code = 0
        for _ in range(topics - 1):
            if topic_id:
                at += 16
            else:
                w, limit, at = yield from text(w, limit, at)
            if at > limit:
                w, limit = yield at
                at = 0
            partitions, at = read_varint(w, at)
            for _ in range(partitions - 1):
                if at > limit:
                    w, limit = yield at
                    at = 0
                if w[at + 5] and not noted.error_code:
                    (noted.error_code,) = int16_at(w, at + 4)
                if w[at + 30] < 2 and w[at + 31] < 2 and w[at + 32] == 0:
                    at += 33  # no record errors, no message, no tags
                else:
                    w, limit, at = yield from produce_errors(w, limit, at + 30)
            w, limit, at = yield from tags(w, limit, at)
        if at > limit:
            w, limit = yield at
            at = 0
        (noted.throttle_ms,) = throttle_at(w, at)
        return at + 4

    return walk


def produce_errors(w: bytes, limit: int, at: int) -> PartitionWalk:
    """Walk over the record errors, the message and the tags of a partition of Produce."""
    errors, at = read_varint(w, at)
    for _ in range(errors - 1):
        w, limit, at = yield from text(w, limit, at + 4)
        w, limit, at = yield from tags(w, limit, at)
    w, limit, at = yield from text(w, limit, at)
    return (yield from tags(w, limit, at))


def fetch_walk(noted: Noted) -> Walk:  # noqa: C901  likewise
    """Walk over Fetch v16 to v18."""
    w, limit = yield 0
    if w[4]:
        w, limit, at = yield from tags(w, limit, 4)
    else:
        at = 5
    noted.throttle_ms, noted.error_code = throttle_and_error_at(w, at)
    at += 10
    topics, at = read_varint(w, at)
    for _ in range(topics - 1):
        if at > limit:
            w, limit = yield at
            at = 0
        at += 16
        partitions = w[at]
        at += 1
        if partitions > 127:
            partitions, at = read_varint(w, at - 1)
        for _ in range(partitions - 1):
            if at > limit:
                w, limit = yield at
                at = 0
            if w[at + 5] and not noted.error_code:
                (noted.error_code,) = int16_at(w, at + 4)
            if w[at + 30] < 2:  # no aborted transactions
                at += 35
            else:
                w, limit, at = yield from aborted(w, limit, at + 30)
            records = w[at]
            at += 1
            if records > 127:
                if w[at] < 128:
                    records += (w[at] << 7) - 128
                    at += 1
                else:
                    records, at = read_varint(w, at - 1)
            if records > 1:
                at += records - 1
                if at > limit:
                    w, limit = yield at
                    at = 0
            if w[at]:
                w, limit, at = yield from tags(w, limit, at)
            else:
                at += 1
        if at > limit:
            w, limit = yield at
            at = 0
        if w[at]:
            w, limit, at = yield from tags(w, limit, at)
        else:
            at += 1
    return at


def aborted(w: bytes, limit: int, at: int) -> PartitionWalk:
    """Walk over the aborted transactions of a partition of Fetch, and its preferred read replica."""
    transactions, at = read_varint(w, at)
    for _ in range(transactions - 1):
        if at > limit:
            w, limit = yield at
            at = 0
        at += 16
        if w[at]:
            w, limit, at = yield from tags(w, limit, at)
        else:
            at += 1
    at += 4
    if at > limit:
        w, limit = yield at
        at = 0
    return w, limit, at


def share_walk(lock_timeout: bool, partition: Callable[[bytes, int, int], PartitionWalk]) -> Walker:
    """Return the walk of ShareFetch or ShareAcknowledge.

    Args:
        lock_timeout: Whether the response has the time-out of acquisition locks.
        partition: Walks over a partition from its error message on.
    """

    def walk(noted: Noted) -> Walk:
        w, limit, at = yield from share_head(noted, lock_timeout)
        topics, at = read_varint(w, at)
        for _ in range(topics - 1):
            if at > limit:
                w, limit = yield at
                at = 0
            partitions, at = read_varint(w, at + 16)
            for _ in range(partitions - 1):
                w, limit, at = yield from partition(w, limit, at + 6)
            w, limit, at = yield from tags(w, limit, at)
        return at

    return walk


def fetched_partition(w: bytes, limit: int, at: int) -> PartitionWalk:
    """Walk over a partition of ShareFetch from its error message on."""
    w, limit, at = yield from text(w, limit, at)
    w, limit, at = yield from text(w, limit, at + 2)
    w, limit, at = yield from tags(w, limit, at + 8)
    w, limit, at = yield from text(w, limit, at)  # the records
    if at > limit:
        w, limit = yield at
        at = 0
    acquired, at = read_varint(w, at)
    for _ in range(acquired - 1):
        w, limit, at = yield from tags(w, limit, at + 18)
    return (yield from tags(w, limit, at))


def acknowledged_partition(w: bytes, limit: int, at: int) -> PartitionWalk:
    """Walk over a partition of ShareAcknowledge from its error message on."""
    w, limit, at = yield from text(w, limit, at)
    w, limit, at = yield from tags(w, limit, at + 8)
    return (yield from tags(w, limit, at))


def share_head(noted: Noted, lock_timeout: bool) -> PartitionWalk:
    """Walk to the topics of ShareFetch and ShareAcknowledge."""
    w, limit = yield 0
    w, limit, at = yield from tags(w, limit, 4)
    noted.throttle_ms, noted.error_code = throttle_and_error_at(w, at)
    w, limit, at = yield from text(w, limit, at + 6)
    if lock_timeout:
        at += 4
    if at > limit:
        w, limit = yield at
        at = 0
    return w, limit, at


def text(w: bytes, limit: int, at: int) -> PartitionWalk:
    """Walk over a string or bytes, which may be null, and make sure that the next fields can be read."""
    if at > limit:
        w, limit = yield at
        at = 0
    size, at = read_varint(w, at)
    if size > 1:
        at += size - 1
    if at > limit:
        w, limit = yield at
        at = 0
    return w, limit, at


def tags(w: bytes, limit: int, at: int) -> PartitionWalk:
    """Walk over a tagged section and make sure that the next fields can be read.

    Raises:
        WireError: There are more than `MAX_TAGS` tags, or they do not ascend.
    """
    if at > limit:
        w, limit = yield at
        at = 0
    count, at = read_varint(w, at)
    if count > MAX_TAGS:
        raise too_many_tags(count, MAX_TAGS)
    last = -1
    for _ in range(count):
        if at > limit:
            w, limit = yield at
            at = 0
        number, at = read_varint(w, at)
        size, at = read_varint(w, at)
        if number <= last:
            raise tag_disorder(number, last)
        last = number
        at += size
    if at > limit:
        w, limit = yield at
        at = 0
    return w, limit, at
