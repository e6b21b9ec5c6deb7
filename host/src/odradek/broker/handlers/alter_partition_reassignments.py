"""AlterPartitionReassignments v0-v1 (KIP-455).

Behavior:
    * A partition whose only replica is this node is already there: NONE. Partitions move between the
      directories of this node by AlterReplicaLogDirs.
    * Another broker, this one twice or no broker at all: INVALID_REPLICA_ASSIGNMENT.
    * Null replicas cancel a reassignment, but there never is one: NO_REASSIGNMENT_IN_PROGRESS.
    * A topic or partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
    * A request with partitions whose TimeoutMs is 0 or below is REQUEST_TIMED_OUT, and does nothing.
Versions:
    * v1: the request may forbid another number of replicas, which a legal assignment never has; the flag is
      repeated in the response.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.replica_assignment import check_replicas
from odradek.broker.request_timeout import check_time_left
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


@answers(AlterPartitionReassignmentsRequest, refuses="topics", each="responses")
def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: RequestContext, broker: Broker
) -> Generator[ReassignableTopicResponse | None, None, AlterPartitionReassignmentsResponse]:
    broker.authorization.require_on_cluster(context, AclOperation.ALTER)
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    check_time_left(request.timeout_ms)
    for topic in request.topics:
        result = ReassignableTopicResponse(name=topic.name)
        for each in topic.partitions:
            result.partitions.append(outcome(topic.name, each, broker))
            yield None
        yield result
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )


def outcome(name: str, wanted: ReassignablePartition, broker: Broker) -> ReassignablePartitionResponse:
    """The result for one partition."""
    code, message = ErrorCode.NONE, None
    try:
        check(name, wanted, broker)
    except ApiError as error:
        code, message = error.code, error.message
    return ReassignablePartitionResponse(
        partition_index=wanted.partition_index, error_code=code, error_message=message
    )


def check(name: str, wanted: ReassignablePartition, broker: Broker) -> None:
    """Check that the partition exists and is to be on this node only."""
    topic, index = broker.topics.named(name), wanted.partition_index
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if topic.partition(index) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if wanted.replicas is None:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_replicas(wanted.replicas, broker.settings.node_id)
