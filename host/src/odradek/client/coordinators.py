"""FindCoordinator, and requests to the coordinators of groups and transactions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from odradek.client.address import Address
from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import ClientError, RequestFailed, failure
from odradek.client.resources import Node
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

BATCH_VERSION = 4  # KIP-699
Value = TypeVar("Value")


class KeyType(IntEnum):
    """The kinds of ids that have a coordinator."""

    GROUP = 0
    TRANSACTION = 1


class Coordinated:
    """A group or transactional id, and the broker that coordinates it.

    Args:
        cluster: The brokers.
        key: The id.
        key_type: The kind of id.
    """

    def __init__(self, cluster: Cluster, key: str, key_type: KeyType = KeyType.GROUP) -> None:
        self.cluster = cluster
        self.key = key
        self.key_type = key_type
        self.node: Node | None = None
        """None if it must be looked up."""

    def send(self, request: Any, timeout_s: float | None = None, most_version: int | None = None) -> Any:
        """Send a request to the coordinator. If it does not answer, it is looked up again the next time."""
        connection = self.connection()
        connection.timeout_s = timeout_s or self.cluster.timeout_s
        try:
            response = connection.send(request, most_version=most_version)
        except ClientError:
            self.node = None
            raise
        finally:
            connection.timeout_s = self.cluster.timeout_s
        if getattr(response, "error_code", 0) == ErrorCode.NOT_COORDINATOR:
            self.node = None
        return response

    def connection(self) -> Connection:
        """A connection to the coordinator."""
        if self.node is None:
            found = coordinators(self.cluster, [self.key], self.key_type)[self.key]
            if isinstance(found, RequestFailed):
                raise found
            self.node = found
        try:
            return self.cluster.connection(self.node.address)
        except ClientError:
            self.node = None
            raise


def each_group(
    cluster: Cluster,
    groups: Iterable[str],
    ask: Callable[[Connection, Node, list[str]], Mapping[str, Value | RequestFailed]],
) -> dict[str, Value | RequestFailed]:
    """Send a request to each coordinator and return the result of each group.

    A group without a coordinator gets the error of FindCoordinator.

    Args:
        cluster: The brokers.
        groups: Ids of the groups.
        ask: Asks one coordinator about its groups. If it raises `RequestFailed`, that is the result of all
            these groups.
    """
    outcomes: dict[str, Value | RequestFailed] = {}
    by_node: dict[Node, list[str]] = defaultdict(list)
    for group, node in coordinators(cluster, list(groups)).items():
        if isinstance(node, RequestFailed):
            outcomes[group] = node
        else:
            by_node[node].append(group)
    for node, members in by_node.items():
        try:
            outcomes |= ask(cluster.connection(node.address), node, members)
        except RequestFailed as error:
            outcomes |= dict.fromkeys(members, error)
    return outcomes


def coordinators(
    cluster: Cluster, keys: Sequence[str], key_type: KeyType = KeyType.GROUP
) -> dict[str, Node | RequestFailed]:
    """The coordinator of each group or transactional id, or the reason why it has none."""
    connection = cluster.any()
    if connection.version(FindCoordinatorRequest()) < BATCH_VERSION:
        return {key: node(alone(connection, key, key_type)) for key in keys}
    response: FindCoordinatorResponse = connection.send(
        FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys)), BATCH_VERSION
    )
    return {row.key: node(row) for row in response.coordinators}


def alone(connection: Connection, key: str, key_type: KeyType) -> Coordinator:
    """Find one coordinator at a broker that accepts only one key per request."""
    response: FindCoordinatorResponse = connection.send(
        FindCoordinatorRequest(key=key, key_type=key_type), most_version=BATCH_VERSION - 1
    )
    return Coordinator(
        key=key,
        node_id=response.node_id,
        host=response.host,
        port=response.port,
        error_code=response.error_code,
        error_message=response.error_message,
    )


def node(row: Coordinator) -> Node | RequestFailed:
    """The coordinator, or the reason why there is none."""
    found = Node(row.node_id, Address(row.host, row.port))
    return failure(row.error_code, row.error_message, row.key) or found
