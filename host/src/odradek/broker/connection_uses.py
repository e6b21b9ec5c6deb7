"""Which topics the connections of a host use, from the Produce and Fetch requests that it serves."""

from __future__ import annotations

from typing import Final

from odradek.broker.authorization import Rights
from odradek.broker.fetch.fetch_context import FetchContext
from odradek.broker.topics import Topics
from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.telemetry.topology import Client, Topology
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps
from odradek.wire.messages.fetch import FetchRequest

MOST_READ: Final = 10_000
"""Topics of a connection."""


class Uses:
    """What one connection uses."""

    __slots__ = ("asked", "client_id", "connection", "named", "read", "written")

    def __init__(self, context: RequestContext) -> None:
        self.connection: ConnectionContext = context.connection
        self.client_id = context.client_id or ""
        self.written: set[str] = set()
        """Names of topics, since the last look."""
        self.read: dict[str | bytes, str] = {}
        """Names of all topics that it reads, by what it calls them."""
        self.named: set[str] = set()
        """Those that it has named since the last look."""
        self.asked: FetchContext | None = None
        """Of the last Fetch since the last look."""


class ConnectionUses:
    """What all connections use.

    Args:
        topology: Takes the uses.
        topics: Of the host.
        clock: The time.
    """

    def __init__(self, topology: Topology, topics: Topics, clock: Clock) -> None:
        self.topology = topology
        self.topics = topics
        self.clock = clock
        self.connections: dict[str, Uses] = {}

    def of(self, context: RequestContext) -> Uses:
        """The uses of a connection, known or new."""
        connection_id = context.connection.connection_id
        uses = self.connections.get(connection_id)
        if uses is None:
            uses = self.connections[connection_id] = Uses(context)
        return uses

    def written(self, context: RequestContext, topic: str) -> None:
        """A client that may do so writes to a topic."""
        self.of(context).written.add(topic)

    def fetched(
        self, request: FetchRequest, context: RequestContext, asked: FetchContext, rights: Rights
    ) -> None:
        """A client reads from the topics that exist, and that it may read."""
        uses = self.of(context)
        uses.asked = asked
        for topic in request.topics:
            key = topic.topic or topic.topic_id
            name = uses.read.get(key) or self.first_read(uses, key, rights)
            if name is not None:
                uses.named.add(name)

    def first_read(self, uses: Uses, key: str | bytes, rights: Rights) -> str | None:
        """The name of a topic that a connection may read; None if there is none."""
        found = self.topics.by_id.get(key) if isinstance(key, bytes) else self.topics.by_name.get(key)
        if found is None or len(uses.read) >= MOST_READ or not rights.allows(found.name):
            return None
        uses.read[key] = found.name
        return found.name

    def look(self) -> Steps:
        """Note what each connection has used since the last look, one after the other."""
        for uses in list(self.connections.values()):
            self.note(uses)
            yield None

    def note(self, uses: Uses) -> None:
        connection, now_ms = uses.connection, self.clock.now_ms()
        client = Client(
            uses.client_id,
            connection.client_address,
            connection.principal,
            connection.client_software_name,
            connection.client_software_version,
        )
        read, uses.named = uses.named, set()
        if uses.asked is not None:
            read.update(uses.read[key] for key, _ in uses.asked.partitions if key in uses.read)
            uses.asked = None
        written, uses.written = uses.written, set()
        for topic in written:
            self.topology.note(client, topic, writes=True, now_ms=now_ms)
        for topic in read:
            self.topology.note(client, topic, writes=False, now_ms=now_ms)

    def connection_closed(self, connection_id: str) -> None:
        """A connection has ended."""
        uses = self.connections.pop(connection_id, None)
        if uses is not None:
            self.note(uses)
