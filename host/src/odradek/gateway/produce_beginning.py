"""The parts of Produce requests that the gateway reads: the field acks, and the headers of batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final

from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.request_heads import after_tags, client_id_end
from odradek.wire.errors import Truncated, WireError
from odradek.wire.layout import StructOf, layout
from odradek.wire.messages.produce import ProduceRequest
from odradek.wire.types import Buffer
from odradek.wire.varint import read_varint
from odradek.wire.walk_source import StreamedWalk, Walk, Wanted, compile_streamed_walk, compile_walk

CLIENT_ID: Final = 8
"""Position of the client id in a request: after API key, version and correlation id."""
LENGTH_BYTES: Final = 4
TIMEOUT_BYTES: Final = 4
ID_BYTES: Final = 16
KNOWN_BYTES: Final = 512
"""Longer beginnings are not remembered."""
ACKS: Final = "acks"
BATCHES: Final = Wanted(batches="records", after=ACKS)
NAME, ID = "name", "topic_id"
BY_ID: Final = 13
"""The first version that names topics by id."""
REQUEST: Final = ProduceRequest
"""The declaration of the requests."""

OfTopic = tuple[bytes, int, int, int]
"""The name or id of a topic, and its records, batches and bytes."""
Counted = tuple[int, int, int, list[OfTopic]]
"""Records, batches, and bytes of batches with their headers, compressed as sent; the same by topic."""
NOTHING: Final[Counted] = (0, 0, 0, [])


def nearest(version: int) -> int:
    """The declared version that a version is read as; one less than the first for all before it."""
    return max(REQUEST.VERSIONS.first - 1, min(version, REQUEST.VERSIONS.last))


def shape_of(nearest_version: int) -> StructOf:
    """The layout of a declared version. Those before the first differ before the field acks only."""
    return layout(REQUEST, max(nearest_version, REQUEST.VERSIONS.first))


@cache
def acks_walk(nearest_version: int) -> Walk:
    """A walk from the end of the header to the end of acks, which it reads."""
    before = "transactional_id" if nearest_version < REQUEST.VERSIONS.first else ""
    wanted = Wanted(reads=(ACKS,), after=before, last=ACKS)
    return compile_walk(shape_of(nearest_version), wanted, f"acks v{nearest_version}")


@cache
def batches_walk(nearest_version: int) -> Walk:
    """A walk from the end of acks to the end of the request, which counts batches and collects topics."""
    wanted = replace(BATCHES, collects=topic_field(nearest_version))
    return compile_walk(shape_of(nearest_version), wanted, f"batches v{nearest_version}")


def topic_field(version: int) -> str:
    """The field that names a topic."""
    return ID if version >= BY_ID else NAME


@cache
def streamed_batches_walk(nearest_version: int) -> Callable[[int], StreamedWalk]:
    """The same for a request in pieces."""
    return compile_streamed_walk(shape_of(nearest_version), BATCHES, f"batches v{nearest_version}")


def first_topic(data: Buffer, at: int, version: int) -> tuple[bytes, bool] | None:
    """The first topic of a request, by name or id, and whether it is the only one.

    Args:
        data: Bytes that contain the beginning of the request.
        at: The end of its acks.
        version: Its version.

    Returns:
        None if it has no topic, or if that is not all there.
    """
    at += TIMEOUT_BYTES
    try:
        if version in REQUEST.FLEXIBLE:
            count, at = read_varint(data, at)
            count -= 1
            size, at = (ID_BYTES + 1, at) if version >= BY_ID else read_varint(data, at)
            size -= 1
        else:
            count = int.from_bytes(data[at : at + 4], signed=True)
            size, at = int.from_bytes(data[at + 4 : at + 6], signed=True), at + 6
    except (IndexError, WireError):
        return None
    is_there = count > 0 and 0 < size <= len(data) - at
    return (bytes(data[at : at + size]), count == 1) if is_there else None


def counted(walk: Walk, data: Buffer, at: int, end: int) -> Counted:
    """Count the batches of a complete request, between the end of its acks and its own; none if malformed."""
    try:
        found = walk(data, at, end)
    except WireError:
        return NOTHING
    return found[2], found[3], found[4], found[5]


class ProduceBeginning:
    """The beginning of the last Produce request of a connection: nearly all others have the same."""

    __slots__ = ("acks", "end", "known", "version", "walk")

    def __init__(self) -> None:
        self.acks = 1
        """Of the last request."""
        self.end = 0
        """The end of its acks, from the API key on."""
        self.known = b""
        """Its bytes from the client id to its acks; empty if they are too many."""
        self.version = -1
        self.walk: Walk = batches_walk(REQUEST.VERSIONS.last)
        """Counts the batches of the last request, from its acks on."""

    def read(self, data: bytes, at: int, size: int, version: int) -> int:
        """Read a request whose API key is at `at`, and which has `size` bytes from there on.

        Returns:
            0; or, if the data ends too early, how many bytes of the request are needed, or more.

        Raises:
            PairFailure: The request ends before its acks, or is malformed.
        """
        if version == self.version and size >= self.end and data.startswith(self.known, at + CLIENT_ID):
            return 0
        found = read_acks(data, at, size, version)
        if found is None:
            return min(size, 2 * (len(data) - at))
        self.acks, self.end = found
        self.walk = batches_walk(nearest(version))
        is_known = self.end <= KNOWN_BYTES
        self.known = data[at + CLIENT_ID : at + self.end] if is_known else b""
        self.version = version if is_known else -1
        return 0


def read_acks(data: Buffer, at: int, size: int, version: int) -> tuple[int, int] | None:
    """The field acks of a request, and its end from the API key on; None if the data ends before it.

    Raises:
        PairFailure: The request ends before the field, or is malformed.
    """
    end = min(at + size, len(data))
    position = client_id_end(data, at - LENGTH_BYTES)
    if version in REQUEST.FLEXIBLE and position <= end:
        position = after_tags(data, position)
    if position <= end:
        try:
            after, _, _, acks = acks_walk(nearest(version))(data, position, end)
        except Truncated:
            pass
        except WireError as error:
            raise PairFailure(Cause.BAD_REQUEST, str(error)) from None
        else:
            return acks, after - at
    if end == at + size:
        raise PairFailure(Cause.BAD_REQUEST, "a Produce request ends before its acks")
    return None
