"""What the client of a cluster may do there, asked without changing anything."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.client.cluster import Cluster
from odradek.client.coordinators import Coordinated
from odradek.client.errors import RequestFailed, failure
from odradek.plugin.authorizer import AclOperation
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

OPERATIONS_SINCE = 8
"""The version of Metadata that tells operations: of brokers since 2.3."""


def topic_operations(cluster: Cluster, topics: Sequence[str]) -> dict[str, set[AclOperation] | RequestFailed]:
    """The operations that the cluster allows on topics, or why a topic cannot be used.

    Raises:
        ClientError: No broker answers, or it cannot tell operations.
    """
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    response: MetadataResponse = cluster.any().send(request, least_version=OPERATIONS_SINCE)
    return {
        row.name or "": failure(row.error_code, subject=row.name)
        or operations(row.topic_authorized_operations)
        for row in response.topics
    }


def operations(bits: int) -> set[AclOperation]:
    """The operations in a field of a response."""
    return {each for each in AclOperation if bits >> each & 1}


def may_join(cluster: Cluster, group: str) -> bool:
    """Whether the cluster lets this client join a group (READ on the group).

    A heartbeat of a member that does not exist asks: brokers look at the right first, and at the member then.

    Raises:
        ClientError: No broker answers, or the group has no coordinator.
    """
    try:
        response: HeartbeatResponse = Coordinated(cluster, group).send(
            HeartbeatRequest(group_id=group, generation_id=-1, member_id="nobody")
        )
    except RequestFailed as error:
        if error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return False
        raise
    return response.error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED
