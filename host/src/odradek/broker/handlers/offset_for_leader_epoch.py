"""OffsetForLeaderEpoch v2-v4 (KIP-101, KIP-320).

Behavior:
    * There is one leader epoch, 0, and it ends at the end of the log: from that a consumer sees that nothing
      was truncated.
    * A later epoch is unknown: epoch -1 and offset -1. A negative one ended before the log began.
    * The client's current epoch is compared with the host's: UNKNOWN_LEADER_EPOCH, FENCED_LEADER_EPOCH.
Versions:
    * v3: ReplicaId. v4: flexible.
Ignored fields:
    * ReplicaId: there are no replicas.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.topics import LEADER_EPOCH, NO_EPOCH, check_leader_epoch
from odradek.log.partition_log import PartitionLog
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def refused(index: int, code: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(error_code=code, partition=index)


@answers(OffsetForLeaderEpochRequest, refuses="topics", each="topics", droppable=True)
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: RequestContext, broker: Broker
) -> Generator[OffsetForLeaderTopicResult | None, None, OffsetForLeaderEpochResponse]:
    rights = broker.authorization.rights(
        context, AclOperation.DESCRIBE, ResourceType.TOPIC, or_on_cluster=AclOperation.CLUSTER_ACTION
    )
    unseen = []
    for topic in request.topics:
        if not rights.allows(topic.topic):
            unseen.append(topic)
            yield None
            continue
        result = OffsetForLeaderTopicResult(topic=topic.topic)
        for partition in topic.partitions:
            result.partitions.append(answer(topic.topic, partition, broker))
            yield None
        yield result
    for topic in unseen:
        result = OffsetForLeaderTopicResult(topic=topic.topic)
        for partition in topic.partitions:
            result.partitions.append(refused(partition.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            yield None
        yield result
    return OffsetForLeaderEpochResponse()


def answer(name: str, wanted: OffsetForLeaderPartition, broker: Broker) -> EpochEndOffset:
    """The end of an epoch in one partition, or the error."""
    try:
        log = broker.topics.online_log(name, wanted.partition)
        check_leader_epoch(wanted.current_leader_epoch)
    except ApiError as error:
        return refused(wanted.partition, error.code)
    epoch, offset = end_of(wanted.leader_epoch, log)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=offset)


def end_of(leader_epoch: int, log: PartitionLog) -> tuple[int, int]:
    """The epoch to compare with, and its end offset; -1 for both if there is none."""
    if leader_epoch == LEADER_EPOCH:
        return LEADER_EPOCH, log.log_end_offset
    if leader_epoch < NO_EPOCH:
        return leader_epoch, log.log_start_offset
    return NO_EPOCH, -1
