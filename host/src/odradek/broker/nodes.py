"""The nodes of the cluster, as clients see them: this host alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.broker_settings import Endpoint
from odradek.plugin.context import ConnectionContext


class Node(NamedTuple):
    """A node, and its address for one client."""

    id: int
    host: str
    port: int


class Nodes:
    """The nodes of a cluster. This one is all of them.

    Args:
        node_id: The id of this node.
        endpoint: The address that clients of a connection get.
    """

    def __init__(self, node_id: int, endpoint: Callable[[ConnectionContext], Endpoint]) -> None:
        self.node_id = node_id
        self.endpoint = endpoint

    def all(self, connection: ConnectionContext) -> list[Node]:
        """The nodes that are up; the first one is the controller."""
        endpoint = self.endpoint(connection)
        return [Node(self.node_id, endpoint.host, endpoint.port)]

    def leader(self, topic: str, partition: int) -> int:
        """The leader of a partition, which has its only replica."""
        return self.node_id

    def coordinator(self, key: str, connection: ConnectionContext) -> Node:
        """The coordinator of a group or a transactional id."""
        return self.all(connection)[0]
