"""ElectLeaders v0-v2 (KIP-183, KIP-460).

Behavior:
    * This node leads everything, so no election is ever needed: ELECTION_NOT_NEEDED for each named partition
      that exists, UNKNOWN_TOPIC_OR_PARTITION for the others. A partition whose log directory is offline
      cannot get a leader: PREFERRED_LEADER_NOT_AVAILABLE, or ELIGIBLE_LEADERS_NOT_AVAILABLE for an unclean
      election.
    * A request for all partitions gets the topics without partitions, because nothing has to be done.
    * An unknown type of election is INVALID_REQUEST, at the top and for each partition.
    * A request whose TimeoutMs is 0 or below is REQUEST_TIMED_OUT, and does nothing; one that names no
      partitions has nothing to wait for.
Versions:
    * v1: types of elections, an error at the top. v2: flexible.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.request_timeout import check_time_left
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED, UNCLEAN = 0, 1
NO_CANDIDATE = {
    PREFERRED: (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."),
    UNCLEAN: (
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "Eligible topic partition leaders are not available.",
    ),
}


@answers(ElectLeadersRequest, refuses="topic_partitions", each="replica_election_results", droppable=True)
def elect_leaders(
    request: ElectLeadersRequest, context: RequestContext, broker: Broker
) -> Generator[ReplicaElectionResult | None, None, ElectLeadersResponse]:
    broker.authorization.require_on_cluster(context, AclOperation.ALTER)
    if request.topic_partitions == []:
        return ElectLeadersResponse()
    check_time_left(request.timeout_ms)
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if request.topic_partitions is None:
        for known in list(broker.topics):
            yield ReplicaElectionResult(topic=known.name)
    for topic in request.topic_partitions or ():
        result = ReplicaElectionResult(topic=topic.topic)
        for index in topic.partitions:
            result.partition_result.append(outcome(topic.topic, index, request.election_type, broker))
            yield None
        yield result
    return ElectLeadersResponse()


def outcome(name: str, index: int, kind: int, broker: Broker) -> PartitionResult:
    """The reason why no leader is elected."""
    topic = broker.topics.named(name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        message = f"No such topic as {name}"
    elif topic.partition(index) is None:
        message = f"No such partition as {name}-{index}"
    elif topic.partitions[index].offline:
        code, message = NO_CANDIDATE[kind]
    else:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
