"""What the connections of a host read, from the Fetch requests that it serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from odradek.broker.fetch.fetch_context import FetchContext
from odradek.lag.readers import MOST_POSITIONS, Reading
from odradek.plugin.context import RequestContext
from odradek.wire.messages.fetch import FetchRequest

MOST_PLACES: Final = 2 * MOST_POSITIONS
"""Of all connections. Beyond it the one that fetches is forgotten until its next Fetch."""


class ConnectionReads:
    """What one connection reads."""

    __slots__ = ("asked", "context", "reading")

    def __init__(self, context: RequestContext, asked: FetchContext) -> None:
        self.context = context
        """Of its first Fetch since it was added."""
        self.asked: FetchContext | None = asked
        """Of its last Fetch; None if there was none since the last look."""
        self.reading = Reading()

    def look(self, now_ms: int) -> None:
        """Note what is fetched now; nothing is, if there was no Fetch since the last look."""
        asked, self.asked = self.asked, None
        self.reading.look(() if asked is None else asked.partitions, now_ms, is_fetching=asked is not None)


class FetchReads:
    """What all connections read."""

    def __init__(self) -> None:
        self.connections: dict[str, ConnectionReads] = {}
        self.closed: list[ConnectionReads] = []
        self.places = 0
        """Positions of all connections, with those that were given up since the last look."""

    def note(self, request: FetchRequest, context: RequestContext, asked: FetchContext) -> None:
        """Take note of a request of a consumer."""
        connection_id = context.connection.connection_id
        reads = self.connections.get(connection_id)
        if reads is None:
            reads = self.connections[connection_id] = ConnectionReads(context, asked)
        reads.asked = asked
        if request.topics:
            reading = reads.reading
            reading.read_committed = request.isolation_level != 0
            offsets = reading.offsets
            before = len(offsets)
            for topic in request.topics:
                key = topic.topic or topic.topic_id
                for wanted in topic.partitions:
                    offsets[key, wanted.partition] = wanted.fetch_offset
            self.places += len(offsets) - before
            if self.places > MOST_PLACES:
                self.places -= len(offsets)
                offsets.clear()

    def connection_closed(self, connection_id: str, now_ms: int) -> None:
        """A connection has ended. What it read is shown for a while."""
        reads = self.connections.pop(connection_id, None)
        if reads is not None:
            reads.look(now_ms)
            reads.reading.closed_ms = now_ms
            self.closed.append(reads)

    def look(self, now_ms: int) -> Iterator[tuple[RequestContext, Reading]]:
        """What each connection reads now."""
        self.closed = [each for each in self.closed if not each.reading.is_over(now_ms)]
        readings = [*self.closed, *self.connections.values()]
        self.places = sum([len(each.reading.offsets) for each in readings])
        for each in readings:
            if each.reading.closed_ms is None:
                each.look(now_ms)
            yield each.context, each.reading
