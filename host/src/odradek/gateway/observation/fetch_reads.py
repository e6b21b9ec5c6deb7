"""What one connection reads, from its Fetch requests.

Requests are kept as they passed, and are read when somebody wants to know. Of requests that name the same
partitions only the last one is kept. That they do is seen by their length and first partition.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from odradek.gateway.observation.request_beginning import body_at
from odradek.gateway.pair_failure import PairFailure
from odradek.gateway.whole_requests import request_body
from odradek.lag.readers import Place, Reading
from odradek.waiting.clock import Clock
from odradek.wire.errors import WireError
from odradek.wire.layout import layout
from odradek.wire.messages.fetch import FetchRequest
from odradek.wire.walk_source import Walk, Wanted, compile_walk

LENGTH_BYTES: Final = 4
KEPT_BYTES: Final = 16_384
"""Of a connection. When there are more, they are read, and forgotten."""
LARGE_EVERY_MS: Final = 1_000
"""A request that is larger is read at once, but no more than one in this time."""
MOST_BYTES: Final = 524_288
"""Of one request: 15 000 partitions. A larger one is left out."""
MOST_PLACES: Final = 20_000
"""Partitions of one connection."""
BY_ID: Final = 13
"""The first version that names topics by id."""

unpack_size: Callable[..., tuple[int]] = struct.Struct(">i").unpack_from
unpack_name: Callable[..., tuple[int]] = struct.Struct(">h").unpack_from
Shape = tuple[int, bytes]
"""The length of a request, and its bytes from its topics to the index of the first partition."""


@cache
def topics_walk(version: int) -> Walk:
    """A walk from the end of the header to the topics of a request.

    Raises:
        WireError: There is no such version.
    """
    return compile_walk(layout(FetchRequest, version), Wanted(before="topics"), f"topics v{version}")


class FetchReads:
    """What one connection reads.

    Args:
        clock: The time.
    """

    __slots__ = (
        "asked",
        "clock",
        "frames",
        "kept_bytes",
        "large_ms",
        "looked",
        "named",
        "read_records",
        "reading",
        "requests",
        "topics",
        "version",
    )

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.frames: dict[Shape, bytes] = {}
        """Requests with their lengths, in their order."""
        self.kept_bytes = 0
        self.version = -1
        """Of the last request."""
        self.topics = slice(0)
        """The bytes of a request of the last version that belong to its shape."""
        self.reading = Reading()
        self.read_records: dict[str | bytes, int] = {}
        self.named: set[Place] = set()
        """The partitions that the connection fetches."""
        self.requests = self.looked = self.asked = 0
        """All requests, those before the last look, and those before the topics were asked for last."""
        self.large_ms = 0
        """When a large request may be read again."""

    def note(self, version: int, head: bytes, at: int) -> FetchRest | None:
        """Take note of a request.

        Args:
            version: Of the request.
            head: Bytes that contain its beginning.
            at: Position in ``head`` of the API key.

        Returns:
            What takes the rest of it; None if all of it is there, or if it is too large.
        """
        (size,) = unpack_size(head, at - LENGTH_BYTES)
        frame = head[at - LENGTH_BYTES : at + size]
        missing = size + LENGTH_BYTES - len(frame)
        if missing:
            return FetchRest(self, version, frame, missing) if size <= MOST_BYTES else None
        self.keep(version, frame)
        return None

    def keep(self, version: int, frame: bytes) -> None:
        """Keep a whole request."""
        self.requests += 1
        if version != self.version:
            self.begin(version, frame)
        size = len(frame)
        if size > KEPT_BYTES:
            self.read_large(frame)
            return
        shape = size, frame[self.topics]
        if self.frames.pop(shape, None) is None:
            self.kept_bytes += size
        self.frames[shape] = frame
        if self.kept_bytes > KEPT_BYTES:
            self.read()

    def begin(self, version: int, frame: bytes) -> None:
        """Learn what the requests of a version have in common. The first request is read at once: positions
        grow from there.
        """
        self.read()
        self.version = version
        self.apply(frame)
        try:
            body = body_at(FetchRequest, version, frame, LENGTH_BYTES)
            start, *_ = topics_walk(version)(frame, body, len(frame))
            self.topics = slice(start, start + shape_bytes(version, frame, start))
        except (WireError, PairFailure, IndexError, ValueError, struct.error):
            self.topics = slice(0)

    def read_large(self, frame: bytes) -> None:
        """Read a large request, unless one was read a moment ago."""
        now_ms = self.clock.monotonic_ms()
        if now_ms >= self.large_ms:
            self.large_ms = now_ms + LARGE_EVERY_MS
            self.read()
            self.apply(frame)

    def read(self) -> None:
        """Read the requests that are kept, and forget them."""
        for frame in self.frames.values():
            self.apply(frame)
        self.frames.clear()
        self.kept_bytes = 0

    def apply(self, frame: bytes) -> None:
        """Take the partitions and offsets of a request; nothing if it is malformed."""
        try:
            request = request_body(FetchRequest, self.version, frame)
        except PairFailure:
            return
        if request is None:
            return
        named = self.named
        if request.session_epoch <= 0:
            named.clear()
        self.reading.read_committed = request.isolation_level != 0
        for topic in request.topics:
            key = topic.topic or topic.topic_id
            for wanted in topic.partitions:
                self.move((key, wanted.partition), wanted.fetch_offset)
        for forgotten in request.forgotten_topics_data:
            key = forgotten.topic or forgotten.topic_id
            named.difference_update((key, index) for index in forgotten.partitions)

    def move(self, place: Place, offset: int) -> None:
        """Take the position in a partition that is fetched."""
        offsets = self.reading.offsets
        before = offsets.get(place, offset)
        if place in offsets or len(offsets) < MOST_PLACES:
            offsets[place] = offset
            self.named.add(place)
        if 0 <= before < offset:
            self.read_records[place[0]] = self.read_records.get(place[0], 0) + offset - before

    def take_read(self) -> Mapping[str | bytes, int]:
        """By how much positions have grown since this was called last, by name or id of the topic."""
        self.read()
        found, self.read_records = self.read_records, {}
        return found

    def topics_read(self) -> set[str | bytes]:
        """The topics, by name or id, that were fetched since this was called last."""
        if self.requests == self.asked:
            return set()
        self.asked = self.requests
        self.read()
        return {place[0] for place in self.named}

    def look(self) -> Reading:
        """What the connection reads now."""
        self.read()
        is_fetching, self.looked = self.requests > self.looked, self.requests
        fetched = self.named if is_fetching else ()
        self.reading.look(fetched, self.clock.monotonic_ms(), is_fetching=is_fetching)
        return self.reading


class FetchRest:
    """Takes the rest of a request that comes in pieces."""

    __slots__ = ("frame", "missing", "reads", "version")

    def __init__(self, reads: FetchReads, version: int, frame: bytes, missing: int) -> None:
        self.reads = reads
        self.version = version
        self.frame = bytearray(frame)
        self.missing = missing

    def __call__(self, piece: memoryview) -> None:
        """Take the next bytes."""
        self.frame += piece
        self.missing -= len(piece)
        if not self.missing:
            self.reads.keep(self.version, bytes(self.frame))


def shape_bytes(version: int, frame: bytes, start: int) -> int:
    """The number of bytes from the topics, which are at ``start``, to the end of the first index."""
    if version >= BY_ID:
        return 1 + 16 + 1 + 4
    if version in FetchRequest.FLEXIBLE:
        return 1 + frame[start + 1] + 1 + 4
    return 4 + 2 + unpack_name(frame, start + 4)[0] + 4 + 4
