"""DeleteShareGroupOffsets v0 (KIP-932).

Behavior:
    * Deletes what a group without members knows of topics: it reads them from where its reset policy says.
    * A group with members is NON_EMPTY_GROUP, an unknown one and one of another type GROUP_ID_NOT_FOUND.
    * A topic that does not exist, or that the group does not know, is UNKNOWN_TOPIC_OR_PARTITION.
    * With ``share.version`` 0 the answer is UNSUPPORTED_VERSION.
Versions:
    * v0: the only one.
Differs from Kafka:
    * It holds at once. In Kafka 4.4.0 it holds when the last connection that read for the group is closed.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import SHARE_VERSION
from odradek.group.share_offsets import NOTHING_TO_DELETE, delete, idle_group
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.error_text import UNKNOWN_PARTITION
from odradek.wire.messages.delete_share_group_offsets import (
    DeletedTopicResult,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)


@answers(DeleteShareGroupOffsetsRequest, each="responses")
def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, context: RequestContext, broker: Broker
) -> Generator[DeletedTopicResult, None, DeleteShareGroupOffsetsResponse]:
    broker.features.require(SHARE_VERSION)
    broker.authorization.require(context, AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    rights = broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC)
    idle_group(broker.groups, request.group_id)
    for topic in request.topics:
        yield deleted(topic.topic_name, request.group_id, broker, allowed=rights.allows(topic.topic_name))
    return DeleteShareGroupOffsetsResponse()


def deleted(name: str, group_id: str, broker: Broker, *, allowed: bool) -> DeletedTopicResult:
    """Delete what the group knows of one topic. Returns its result."""
    if not allowed:
        return DeletedTopicResult(topic_name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic_id = broker.groups.topics.topic_id(name)
    if topic_id is None:
        return DeletedTopicResult(
            topic_name=name,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=UNKNOWN_PARTITION,
        )
    result = DeletedTopicResult(topic_name=name)
    try:
        if not delete(broker.groups, idle_group(broker.groups, group_id), topic_id):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOTHING_TO_DELETE)
        result.topic_id = topic_id
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.message
    return result
