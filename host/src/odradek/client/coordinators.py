"""FindCoordinator, and requests to the coordinators of groups, one per coordinator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from odradek.client.address import Address
from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import RequestFailed, failure
from odradek.client.resources import Node
from odradek.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

BATCH_VERSION = 4  # KIP-699
Value = TypeVar("Value")


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


def coordinators(cluster: Cluster, groups: Sequence[str]) -> dict[str, Node | RequestFailed]:
    """The coordinator of each group, or the reason why it has none."""
    connection = cluster.any()
    if connection.version(FindCoordinatorRequest()) < BATCH_VERSION:
        return {group: node(alone(connection, group)) for group in groups}
    response: FindCoordinatorResponse = connection.send(
        FindCoordinatorRequest(coordinator_keys=list(groups)), BATCH_VERSION
    )
    return {row.key: node(row) for row in response.coordinators}


def alone(connection: Connection, group: str) -> Coordinator:
    """Find one coordinator at a broker that accepts only one key per request."""
    response: FindCoordinatorResponse = connection.send(
        FindCoordinatorRequest(key=group), most_version=BATCH_VERSION - 1
    )
    return Coordinator(
        key=group,
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
