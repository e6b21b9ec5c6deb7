"""The account of one observed client: the sums of the current window, and the state that outlives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from odradek.gateway.observation.apis import Role
from odradek.gateway.observation.fetch_reads import FetchReads
from odradek.gateway.observation.membership import Memberships
from odradek.gateway.observation.observer import CloseCause
from odradek.gateway.observation.row import Produced, Row
from odradek.gateway.telemetry_answers import PairConnection
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance
from odradek.telemetry.goodbyes import KEEPS_ITS_PLACE

BOOTSTRAP_NODE: Final = -1
"""Node id of pairs whose node is not known."""
MAX_TRANSACTIONAL_IDS: Final = 100
MOST_TOPICS: Final = 100
"""Topics of a client in one window."""
OTHER_TOPICS: Final = "other"


@dataclass(slots=True, eq=False)
class NodeAccount:
    """The part of a client's account about one node."""

    node_id: int
    rows: dict[int, Row] = field(default_factory=dict)
    """By API key. The dictionary stays the same object: pairs hold it."""
    in_flight_max: int = 0
    """Most requests of one connection that waited for their responses at the same time."""
    connections: int = 0
    """Opened in the window."""
    open: int = 0
    """Open now."""
    disconnects: dict[CloseCause, int] = field(default_factory=dict)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing happened in the window."""
        return not self.rows and not self.connections and not self.disconnects

    def row(self, api_key: int) -> Row:
        """The row of an API, known or new."""
        row = self.rows.get(api_key)
        if row is None:
            row = self.rows[api_key] = Row(api_key)
        return row

    def closed(self, by: CloseCause) -> None:
        """Count the end of a connection."""
        self.disconnects[by] = self.disconnects.get(by, 0) + 1
        self.open -= 1

    def merge(self, other: NodeAccount) -> None:
        """Take over the sums of another account."""
        for api_key, row in other.rows.items():
            self.row(api_key).merge(row)
        self.in_flight_max = max(self.in_flight_max, other.in_flight_max)

    def clear(self) -> None:
        """Begin the next window."""
        self.rows.clear()
        self.in_flight_max = self.connections = 0
        self.disconnects = {}


class TopicSums:
    """What a client has written to and read from one topic in one window."""

    __slots__ = ("produced", "read_records")

    def __init__(self) -> None:
        self.produced = Produced()
        self.read_records = 0
        """By how much its positions have grown."""


class OpenPair(Protocol):
    """An open pair of a client."""

    @property
    def fetches(self) -> FetchReads | None:
        """Its Fetch requests; None if it has sent none, or if they are not followed."""

    def take_written(self) -> Mapping[str | bytes, Produced]:
        """What it has written since this was called last, by name or id of the topic."""

    @property
    def is_moved(self) -> bool:
        """Whether the pair belongs to another client, or leads to another node, than at its last frame."""

    def leave(self) -> None:
        """Find the client again at the next frame."""


@dataclass(slots=True, eq=False)
class ClientAccount:
    """One observed client."""

    key: ClientKey
    instance_id: bytes
    since_ms: int
    """When the window began, epoch milliseconds."""
    since_monotonic_ms: int
    nodes: dict[int, NodeAccount] = field(default_factory=dict)
    pairs: set[OpenPair] = field(default_factory=set)
    """Its open pairs."""
    role: Role = Role.NONE
    pushes: bool = False
    """One of its pairs has carried a telemetry request."""
    memberships: Memberships = field(default_factory=Memberships)
    torn: bool = False
    """A connection ended otherwise than in order, and none has been opened since."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels that are known, and stay when a membership ends: what a client reports is one series."""
    last_group_id: str = ""
    transactional_ids: set[str] = field(default_factory=set)
    metadata: tuple[int, bytes] = 0, b""
    """Version and bytes of its last Metadata response, if it was short."""
    closed_ms: int = 0
    """When its last connection ended, on the monotonic clock."""
    topics: dict[str | bytes, TopicSums] = field(default_factory=dict)
    """By name or id; at most `MOST_TOPICS` and `OTHER_TOPICS`."""
    opened_before: int = 0
    """Connections of windows that ended before the client had shown what it is."""
    due_ms: int = 0
    """When the window ends, on the monotonic clock."""

    @property
    def is_quiet(self) -> bool:
        """Whether nothing happened in the window."""
        return all(node.is_quiet for node in self.nodes.values()) and not self.memberships.rebalances.count

    @property
    def opened(self) -> int:
        """Connections opened in the window."""
        return sum(node.connections for node in self.nodes.values())

    @property
    def instances_seen(self) -> int:
        """A guess of how many processes share the key: open pairs by number of nodes."""
        nodes = sum(1 for node in self.nodes.values() if node.open)
        return -(-len(self.pairs) // nodes) if nodes else 0

    @property
    def has_left(self) -> bool:
        """Whether a client without connections has closed them in order, and has left its groups."""
        keeps_place = KEEPS_ITS_PLACE.search(self.key.client_id)
        return not self.torn and (not self.memberships.members or keeps_place is not None)

    @property
    def group_id(self) -> str:
        """The group that it is in, or was in when this was asked last; empty if there are several."""
        groups = {member.group_id for member in self.memberships.members.values()}
        if groups:
            self.last_group_id = groups.pop() if len(groups) == 1 else ""
        return self.last_group_id

    def node(self, node_id: int) -> NodeAccount:
        """The account of a node, known or new."""
        node = self.nodes.get(node_id)
        if node is None:
            node = self.nodes[node_id] = NodeAccount(node_id)
        return node

    def topic(self, name: str | bytes) -> TopicSums:
        """The sums of a topic, known or new; those of all others beyond `MOST_TOPICS`."""
        if name not in self.topics and len(self.topics) >= MOST_TOPICS:
            name = OTHER_TOPICS
        return self.topics.setdefault(name, TopicSums())

    def clear(self, now_ms: int, now_monotonic_ms: int) -> None:
        """Begin the next window."""
        self.topics = {}
        self.since_ms, self.since_monotonic_ms = now_ms, now_monotonic_ms
        self.opened_before = 0 if self.role else self.opened_before + self.opened
        for node in list(self.nodes.values()):
            if node.open <= 0:
                del self.nodes[node.node_id]
            else:
                node.clear()
        self.memberships.rebalances = type(self.memberships.rebalances)()
        self.memberships.forget_silent(now_monotonic_ms)


@dataclass(slots=True, eq=False)
class Watched:
    """An observed client, and how it appears in the log."""

    account: ClientAccount
    connection: PairConnection
    instance: ClientMetricsInstance
    wanted: frozenset[str]
    told: bool = False
    """A record says that the client is there, and none that it has gone."""
