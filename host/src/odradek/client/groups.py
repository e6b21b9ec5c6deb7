"""ListGroups and DeleteGroups."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from odradek.client.address import Address
from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.coordinators import each_group
from odradek.client.errors import RequestFailed, check, failure
from odradek.client.resources import Node
from odradek.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

STATES_VERSION = 4  # KIP-518
TYPES_VERSION = 5  # KIP-848
UNKNOWN = "Unknown"
CONSUMER_PROTOCOL_TYPES = ("consumer", "")
"""Protocol types of consumer groups; empty if offsets were committed without members."""
CONSUMER_GROUP_TYPES = ("Classic", "Consumer", UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """One group in the list of groups."""

    group_id: str
    protocol_type: str
    """``consumer``, ``connect`` ...; empty for a group that has only offsets."""
    state: str = UNKNOWN
    """In Kafka's spelling, such as ``Stable``; `UNKNOWN` from brokers before 2.6."""
    type: str = UNKNOWN
    """``Classic``, ``Consumer``, ``Share`` ...; `UNKNOWN` from brokers before 3.8."""

    @property
    def consumes(self) -> bool:
        """Whether it is a consumer group, and not a group of Connect workers or a share group."""
        return self.protocol_type in CONSUMER_PROTOCOL_TYPES and self.type in CONSUMER_GROUP_TYPES


def list_groups(cluster: Cluster, states: Collection[str], types: Collection[str]) -> list[GroupListing]:
    """The groups of all brokers; see `AdminClient.list_groups`."""
    request = ListGroupsRequest(states_filter=sorted(states), types_filter=sorted(types))
    least_version = TYPES_VERSION if types else STATES_VERSION if states else 0
    found: dict[str, GroupListing] = {}
    for broker in cluster.metadata([]).brokers:
        connection = cluster.connection(Address(broker.host, broker.port))
        response: ListGroupsResponse = connection.send(request, least_version)
        check(response.error_code, subject="ListGroups")
        found |= {row.group_id: listing(row) for row in response.groups}
    return list(found.values())


def listing(row: ListedGroup) -> GroupListing:
    """Convert one group from the wire."""
    return GroupListing(
        group_id=row.group_id,
        protocol_type=row.protocol_type,
        state=row.group_state or UNKNOWN,
        type=row.group_type.capitalize() or UNKNOWN,
    )


def delete_groups(cluster: Cluster, groups: Iterable[str]) -> dict[str, RequestFailed | None]:
    """Delete groups and return the result of each."""

    def ask(connection: Connection, node: Node, group: list[str]) -> dict[str, RequestFailed | None]:
        response: DeleteGroupsResponse = connection.send(DeleteGroupsRequest(groups_names=group))
        return {row.group_id: failure(row.error_code, subject=row.group_id) for row in response.results}

    return each_group(cluster, groups, ask)
