"""DeleteRecords v0-v2.

Behavior:
    * Raises the log start offset to the given offset (-1: the high watermark), which survives kill -9 before
      the answer. Segments below it are deleted at once; the rest of the first segment can no longer be read.
    * The last mention of a partition counts.
    * An offset below the log start offset changes nothing and is not an error.
    * OFFSET_OUT_OF_RANGE for any other negative offset, or one above the high watermark; POLICY_VIOLATION for
      a topic that is only compacted; INVALID_TOPIC_EXCEPTION for an internal topic.
Ignored fields:
    * TimeoutMs: there are no replicas to wait for.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.topics import INTERNAL_TOPICS
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

INVALID_LOW_WATERMARK = -1  # DeleteRecordsResponse.INVALID_LOW_WATERMARK


def refused(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=INVALID_LOW_WATERMARK, error_code=code
    )


@answers(DeleteRecordsRequest, refuses="topics", each="topics", low_watermark=INVALID_LOW_WATERMARK)
def delete_records(
    request: DeleteRecordsRequest, context: RequestContext, broker: Broker
) -> Generator[DeleteRecordsTopicResult | None, None, DeleteRecordsResponse]:
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update((each.partition_index, each) for each in topic.partitions)
    rights = broker.authorization.rights(context, AclOperation.DELETE, ResourceType.TOPIC)
    for name, partitions in wanted.items():
        result = DeleteRecordsTopicResult(name=name)
        allowed = rights.allows(name)
        for each in partitions.values():
            result.partitions.append(
                delete(name, each, broker)
                if allowed
                else refused(each.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            )
            yield None
        yield result
    return DeleteRecordsResponse()


def delete(topic: str, wanted: DeleteRecordsPartition, broker: Broker) -> DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        if topic in INTERNAL_TOPICS:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        log = broker.topics.online_log(topic, index)
        if log.config.cleanup_policy == {"compact"}:
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        low_watermark = log.delete_records(wanted.offset)
    except ApiError as error:
        return refused(index, error.code)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)
