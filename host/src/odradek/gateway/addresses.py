"""Node ids and addresses: what clients are told, and what the brokers said.

Node ids pass through a gateway unchanged. Only hosts and ports are replaced. The address that is advertised
for a node depends on the node id and the configuration alone, so every replica of a gateway, and the same one
after a restart, advertises the same address.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from odradek.gateway.node_names import NodeNames

MOST_HOST_CHARACTERS = 255
"""No host name is longer; a longer text would only take memory."""


class Addresses(Protocol):
    """The addresses that a rewriter needs."""

    def advertised(self, node_id: int) -> tuple[str, int] | None:
        """Return the host and port that clients dial for a node; None for a node that has none.

        A response leaves such a node out: its own address must not reach a client.
        """

    def learned(self, node_id: int, host: str, port: int) -> None:
        """Take note of the address that a broker's response named for a node."""


@dataclass(frozen=True, slots=True)
class NodeRanges:
    """Sorted, disjoint ranges of node ids, packed in order: each id has its place, from 0 on."""

    ranges: tuple[tuple[int, int], ...]
    """First and last id of each range."""
    starts: tuple[int, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, ranges: Sequence[tuple[int, int]]) -> NodeRanges:
        """Pack ranges.

        Raises:
            ValueError: A range is empty or negative, or two ranges overlap.
        """
        ordered = sorted(ranges)
        places: list[int] = []
        place = 0
        previous = -1
        for first, last in ordered:
            if first < 0 or last < first:
                raise ValueError(f"the range {first}-{last} holds no node id")
            if first <= previous:
                raise ValueError(f"two ranges hold node id {first}")
            places.append(place)
            place += last - first + 1
            previous = last
        return cls(tuple(ordered), tuple(first for first, _ in ordered), tuple(places))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __iter__(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def place(self, node_id: int) -> int | None:
        """Return the place of a node id, from 0 on; None outside every range."""
        index = bisect_right(self.starts, node_id) - 1
        if index < 0 or node_id > self.ranges[index][1]:
            return None
        return self.places[index] + node_id - self.starts[index]


@dataclass(slots=True)
class NodeTable:
    """The upstream address of each node, as the cluster named it last."""

    addresses: dict[int, tuple[str, int]] = field(default_factory=dict)
    listeners: list[Callable[[int], None]] = field(default_factory=list)
    """Called with the id of a node that was not known, or that has moved to another address."""
    limit: int = 4096
    """Further nodes are not remembered: responses of brokers must not fill the memory."""

    def learned(self, node_id: int, host: str, port: int) -> None:
        """Take note of the address of a node; a host that is empty says nothing."""
        if not 0 < len(host) <= MOST_HOST_CHARACTERS or port <= 0 or node_id < 0:
            return
        address = (host, port)
        known = self.addresses.get(node_id)
        if known == address or (known is None and len(self.addresses) >= self.limit):
            return
        self.addresses[node_id] = address
        for listener in self.listeners:
            listener(node_id)

    def address(self, node_id: int) -> tuple[str, int] | None:
        """Return the upstream host and port of a node; None if no response has named it yet."""
        return self.addresses.get(node_id)


@dataclass(slots=True)
class UnmappedNodes:
    """The node ids that no address is configured for, over all listeners."""

    seen: dict[int, int] = field(default_factory=dict)
    """How often each was named."""
    on_first: Callable[[int], None] = lambda _node_id: None
    """Called at the first time a node id is seen."""
    bypass: bool = False
    """Clients dial such a node at its own address."""
    limit: int = 1000

    def note(self, node_id: int) -> None:
        """Count a node id."""
        seen = self.seen.get(node_id)
        if seen is not None:
            self.seen[node_id] = seen + 1
        elif len(self.seen) < self.limit:
            self.seen[node_id] = 1
            self.on_first(node_id)

    def __int__(self) -> int:
        return sum(self.seen.values())


@dataclass(slots=True)
class NodeAddresses(ABC):
    """`Addresses` of one listener, for the node ids of some ranges."""

    nodes: NodeRanges
    table: NodeTable
    unmapped: UnmappedNodes

    def advertised(self, node_id: int) -> tuple[str, int] | None:
        """Return the host and port that clients dial for a node; None for a node that has none."""
        place = self.nodes.place(node_id)
        if place is not None:
            return self.address(node_id, place)
        if self.unmapped.bypass:
            return self.table.address(node_id)
        self.unmapped.note(node_id)
        return None

    @abstractmethod
    def address(self, node_id: int, place: int) -> tuple[str, int]:
        """Return the host and port of a node id, which has this place in its ranges."""

    def learned(self, node_id: int, host: str, port: int) -> None:
        """Take note of the address that a broker's response named for a node."""
        unmapped = self.unmapped
        if self.nodes.place(node_id) is not None:
            self.table.learned(node_id, host, port)
        elif unmapped.bypass:
            unmapped.note(node_id)
            if node_id in unmapped.seen:
                self.table.learned(node_id, host, port)


@dataclass(slots=True)
class PortPerNode(NodeAddresses):
    """One host name, and one port for each node id."""

    host: str
    ports: Sequence[int] = ()
    """The advertised port of each place of `nodes`: `range(9193, 9199)` for six node ids; set once bound."""

    def address(self, node_id: int, place: int) -> tuple[str, int]:
        return self.host, self.ports[place]


@dataclass(slots=True)
class NamePerNode(NodeAddresses):
    """One port, and one host name for each node id."""

    names: NodeNames
    port: int = 0
    """The advertised port, once it is bound."""

    def address(self, node_id: int, place: int) -> tuple[str, int]:
        return self.names.name(node_id), self.port
