"""Arrays of nodes with their addresses: brokers in Metadata and DescribeCluster, and NodeEndpoints."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import INT32, count_at, int32_at, text, text_at
from odradek.wire.errors import WireError
from odradek.wire.varint import skip_tags, varint

MAX_NODES = 10_000
"""The most nodes in a response: rewriting them takes about 10 ms. The largest clusters have some hundreds."""


def readdressed(addresses: Addresses, node_id: int, host: bytes, port: int) -> tuple[str, int] | None:
    """Note the address that a broker named for a node, and return the advertised one; None to leave it out.

    Raises:
        UnicodeDecodeError: The host is not UTF-8.
    """
    addresses.learned(node_id, str(host, "utf-8"), port)
    return addresses.advertised(node_id)


@dataclass(frozen=True, slots=True)
class NodeArray:
    """The layout of an array of nodes: id, host, port, rack and what follows."""

    flexible: bool = True
    has_rack: bool = True
    flag_bytes: int = 0
    """Fixed bytes between the rack and the tags."""

    def count(self, data: bytes, at: int) -> tuple[int, int]:
        """Return the number of nodes and the position of the first.

        Raises:
            WireError: There are more than `MAX_NODES`.
        """
        count, at = count_at(data, at, self.flexible)
        if count > MAX_NODES:
            raise WireError(f"{count} nodes are more than {MAX_NODES}")
        return max(count, 0), at

    def node(self, data: bytes, at: int, addresses: Addresses) -> tuple[bytes | None, int]:
        """Return a node with its advertised address, None if it has none, and the position of the next.

        Raises:
            IndexError, struct.error: The data ends first. Nothing was noted.
        """
        start = at
        host_start, host_end = text_at(data, at + 4, self.flexible)
        rest = host_end + 4
        end = rest
        if self.has_rack:
            _, end = text_at(data, end, self.flexible)
        end += self.flag_bytes
        if self.flexible:
            end = skip_tags(data, end)
        if end > len(data):
            raise IndexError
        (node_id,) = int32_at(data, start)
        (port,) = int32_at(data, host_end)
        address = readdressed(addresses, node_id, data[host_start:host_end], port)
        if address is None:
            return None, end
        host, port = address
        return data[start : start + 4] + text(host, self.flexible) + INT32.pack(port) + data[rest:end], end

    def rewritten(self, data: bytes, at: int, addresses: Addresses) -> tuple[bytes, int]:
        """Return the array with advertised addresses and the position after it."""
        count, at = self.count(data, at)
        nodes: list[bytes] = []
        for _ in range(count):
            node, at = self.node(data, at, addresses)
            if node is not None:
                nodes.append(node)
        return self.packed(nodes), at

    def packed(self, nodes: list[bytes]) -> bytes:
        """Return an array of nodes, its count first."""
        count = len(nodes)
        return (varint(count + 1) if self.flexible else INT32.pack(count)) + b"".join(nodes)


ENDPOINTS = NodeArray()
"""NodeEndpoints of Produce, Fetch, ShareFetch and ShareAcknowledge."""
NO_ENDPOINTS = b"\x01"
