"""The nodes in a response: each gets its advertised address, or is left out.

Which fields a node has is declared with its message; here only names are known.
"""

from __future__ import annotations

from typing import Any, Final

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import INT16, INT32, count_at, text, text_start
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.layout import ArrayOf, StructOf
from odradek.wire.varint import varint
from odradek.wire.walk_source import Wanted, compile_walk

MAX_NODES = 10_000
"""The most nodes in a response: rewriting them takes about 30 ms. The largest clusters have some hundreds."""
NO_NODE = -1
UNAVAILABLE = "The coordinator is not available."
"""Kafka's text of COORDINATOR_NOT_AVAILABLE."""
READS: Final = ("node_id", "broker_id", "host", "port", "error_code", "error_message", "throttle_time_ms")
NODE: Final = Wanted(counts="error_code", reads=READS)


class Node:
    """One structure with the address of a node, compiled: an element of an array, or a whole message.

    A structure with an error code names a coordinator, whose node may be unknown. If it has no advertised
    address, it is answered with COORDINATOR_NOT_AVAILABLE: clients ask again, as they do while it moves.
    """

    def __init__(self, shape: StructOf, title: str) -> None:
        self.flexible = shape.flexible
        self.walk = compile_walk(shape, NODE, title)

    def rewritten(
        self, data: bytes, start: int, end: int, addresses: Addresses
    ) -> tuple[bytes | None, tuple[Any, ...]]:
        """Return a node with its advertised address, None if it is left out, and the result of the walk.

        Raises:
            WireError, UnicodeDecodeError: The data does not parse. Nothing was noted.
        """
        found = self.walk(data, start, end)
        (after, _, at, node_id, broker_at, broker_id, host_at, host_end, port_at, port,
         error_at, _, message_at, message_end, _, _) = found  # fmt: skip
        if at is None:
            at, node_id = broker_at, broker_id
        address: tuple[str, int] | None = "", -1
        if error_at is None or node_id >= 0:
            host = str(data[text_start(data, host_at, self.flexible) : host_end], "utf-8")
            addresses.learned(node_id, host, port)
            address = addresses.advertised(node_id)
        changes = []
        if address is None:
            if error_at is None:
                return None, found
            address = "", -1
            changes = [
                (at, at + INT32.size, INT32.pack(NO_NODE)),
                (error_at, error_at + INT16.size, INT16.pack(ErrorCode.COORDINATOR_NOT_AVAILABLE)),
            ]
            if message_at is not None:
                changes.append((message_at, message_end, text(UNAVAILABLE, self.flexible)))
        changes.append((host_at, host_end, text(address[0], self.flexible)))
        changes.append((port_at, port_at + INT32.size, INT32.pack(address[1])))
        pieces = []
        for first, last, new in sorted(changes):
            pieces += [data[start:first], new]
            start = last
        return b"".join((*pieces, data[start:after])), found


class NodeArray:
    """An array of nodes, compiled."""

    def __init__(self, kind: object, flexible: bool, title: str) -> None:
        assert isinstance(kind, ArrayOf)
        assert isinstance(kind.element, StructOf)
        self.flexible = flexible
        self.node = Node(kind.element, title)

    def rewritten(
        self, data: bytes, at: int, end: int, addresses: Addresses
    ) -> tuple[bytes, int, dict[int, int]]:
        """Return the array with advertised addresses, the position after it, and the errors in it.

        Raises:
            WireError, UnicodeDecodeError: The array does not parse.
        """
        count, at = count_at(data, at, self.flexible)
        if count > MAX_NODES:
            raise WireError(f"{count} nodes are more than {MAX_NODES}")
        nodes: list[bytes] = []
        errors: dict[int, int] = {}
        for _ in range(count):
            node, (at, counts, *_) = self.node.rewritten(data, at, end, addresses)
            errors.update(counts or {})
            if node is not None:
                nodes.append(node)
        return self.count(len(nodes)) + b"".join(nodes), at, errors

    def count(self, count: int) -> bytes:
        """Return a count as bytes."""
        return varint(count + 1) if self.flexible else INT32.pack(count)
