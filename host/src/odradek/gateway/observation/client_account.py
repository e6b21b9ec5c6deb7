"""The account of one observed client: the sums of the current window, and the state that outlives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from odradek.gateway.observation.apis import Role
from odradek.gateway.observation.membership import Memberships
from odradek.gateway.observation.observer import CloseCause
from odradek.gateway.observation.row import Row
from odradek.telemetry.goodbyes import KEEPS_ITS_PLACE, Place
from odradek.wire.uuid_text import named_uuid

BOOTSTRAP_NODE: Final = -1
"""Node id of pairs whose node is not known."""
MAX_TRANSACTIONAL_IDS: Final = 100


class ClientKey(NamedTuple):
    """The facts that tell one observed client from another."""

    principal: str
    client_id: str
    address: str
    software_name: str
    software_version: str

    @property
    def place(self) -> Place:
        """Where its members of groups are."""
        return Place(self.client_id, self.address)

    def instance_id(self, origin: str) -> bytes:
        """The 16 bytes that stand for the client instance id, the same after every restart.

        Args:
            origin: The observing gateway: what two of them see of a client are two series.
        """
        return named_uuid("odradek.observed", origin, *self)


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


class OpenPair(Protocol):
    """An open pair of a client."""

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
    transactional_ids: set[str] = field(default_factory=set)
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

    def node(self, node_id: int) -> NodeAccount:
        """The account of a node, known or new."""
        node = self.nodes.get(node_id)
        if node is None:
            node = self.nodes[node_id] = NodeAccount(node_id)
        return node

    def clear(self, now_ms: int, now_monotonic_ms: int) -> None:
        """Begin the next window."""
        self.since_ms, self.since_monotonic_ms = now_ms, now_monotonic_ms
        self.opened_before = 0 if self.role else self.opened_before + self.opened
        for node in list(self.nodes.values()):
            if node.open <= 0:
                del self.nodes[node.node_id]
            else:
                node.clear()
        self.memberships.rebalances = type(self.memberships.rebalances)()
        self.memberships.forget_silent(now_monotonic_ms)
