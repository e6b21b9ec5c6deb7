"""ListOffsets v1-v11.

Behavior:
    * Timestamp -2 is the first offset, -1 the next one to be written, -3 the record with the largest
      timestamp (v7), -4 the first local one (v8, the same as -2). -5 and -6 (v9, v11) are for tiered storage,
      which does not exist: offset -1.
    * Any other timestamp asks for the first record at or after it; offset -1 if there is none.
    * A leader epoch above the current one is UNKNOWN_LEADER_EPOCH, one below it FENCED_LEADER_EPOCH.
    * A negative timestamp that the version does not define is UNSUPPORTED_VERSION.
    * A partition that is named twice is answered once: INVALID_REQUEST.
    * Isolation level 1: the log ends before the first open transaction.
Versions:
    * v2: IsolationLevel. v4: leader epochs.
Ignored fields:
    * TimeoutMs (v10): the answer is immediate. ReplicaId: there are no replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.topics import LEADER_EPOCH, check_leader_epoch
from odradek.log.partition_log import PartitionLog
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = (
    -1,
    -2,
    -3,
    -4,
    -5,
    -6,
)
SINCE_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
UNKNOWN = -1
READ_COMMITTED = 1


def refused(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


@answers(ListOffsetsRequest, refuses="topics", each="topics", droppable=True)
def list_offsets(
    request: ListOffsetsRequest, context: RequestContext, broker: Broker
) -> Generator[ListOffsetsTopicResponse | Step, Any, ListOffsetsResponse]:
    times = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    lookup = Lookup(context.api_version, request.isolation_level)
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    unseen = []
    for topic in request.topics:
        if not rights.allows(topic.name):
            unseen.append(topic)
            yield None
            continue
        found = ListOffsetsTopicResponse(name=topic.name)
        for index, partition in by_index(topic).items():
            if times[topic.name, index] > 1:
                found.partitions.append(refused(index, ErrorCode.INVALID_REQUEST))
            else:
                found.partitions.append((yield from answer(topic.name, partition, lookup, broker)))
            yield None
        yield found
    for topic in unseen:
        found = ListOffsetsTopicResponse(name=topic.name)
        for index in by_index(topic):
            found.partitions.append(refused(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            yield None
        yield found
    return ListOffsetsResponse()


def by_index(topic: ListOffsetsTopic) -> dict[int, ListOffsetsPartition]:
    """Each partition once."""
    return {partition.partition_index: partition for partition in topic.partitions}


@dataclass(frozen=True, slots=True)
class Lookup:
    """The offset lookups of one request."""

    version: int
    isolation_level: int

    def check(self, timestamp: int) -> None:
        """Check that the version defines the timestamp.

        Raises:
            ApiError: UNSUPPORTED_VERSION; UNKNOWN_SERVER_ERROR for an isolation level that does not exist, as
                in Kafka.
        """
        if self.version < SINCE_VERSION.get(timestamp, 0) or timestamp < EARLIEST_PENDING_UPLOAD:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if self.isolation_level not in (0, READ_COMMITTED):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def find(self, log: PartitionLog, timestamp: int) -> Generator[Step, Any, tuple[int, int]]:
        """The timestamp and offset that were asked for; -1 if there is none."""
        end = log.last_stable_offset if self.isolation_level == READ_COMMITTED else log.high_watermark
        if timestamp == LATEST:
            return UNKNOWN, end
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return UNKNOWN, log.log_start_offset
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return UNKNOWN, UNKNOWN
        if timestamp == MAX_TIMESTAMP:
            found = yield from log.max_timestamp_offset()
        else:
            found = yield from log.offset_for_time(timestamp)
        return found if found is not None and found.offset < end else (UNKNOWN, UNKNOWN)


def answer(
    name: str, wanted: ListOffsetsPartition, lookup: Lookup, broker: Broker
) -> Generator[Step, Any, ListOffsetsPartitionResponse]:
    """The offset for one partition, or why there is none."""
    try:
        lookup.check(wanted.timestamp)
        log = broker.topics.online_log(name, wanted.partition_index)
        check_leader_epoch(wanted.current_leader_epoch)
        try:
            timestamp, offset = yield from lookup.find(log, wanted.timestamp)
        except ApiError:
            broker.topics.online_log(name, wanted.partition_index)  # it may be deleted by now
            raise
    except ApiError as error:
        return refused(wanted.partition_index, error.code)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=UNKNOWN if offset == UNKNOWN else LEADER_EPOCH,
    )
