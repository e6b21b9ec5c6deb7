"""OffsetDelete v0: groups of both protocols.

Behavior:
    * A topic to which members are subscribed is GROUP_SUBSCRIBED_TO_TOPIC. Members that are not consumers may
      read any topic: the whole group is NON_EMPTY_GROUP.
    * Deleting an offset that does not exist succeeds.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.group.consumer_subscription import CONSUMER_PROTOCOL_TYPE
from odradek.group.group import GroupType, not_of_type
from odradek.group.group_coordinator import Group
from odradek.group.share_group import ShareGroup
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@answers(OffsetDeleteRequest, each="topics")
def offset_delete(
    request: OffsetDeleteRequest, context: RequestContext, broker: Broker
) -> Generator[OffsetDeleteResponseTopic | None, None, OffsetDeleteResponse]:
    broker.authorization.require(context, AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    group = broker.groups.group(request.group_id)
    broker.groups.check_not_owned(request.group_id)
    if isinstance(group, ShareGroup):
        raise not_of_type(request.group_id, GroupType.CONSUMER)
    if not group.is_empty and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    rights = broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC)
    for topic in request.topics:
        yield from deleted(topic, group, broker, allowed=rights.allows(topic.name))
    return OffsetDeleteResponse()


def deleted(
    topic: OffsetDeleteRequestTopic, group: Group, broker: Broker, *, allowed: bool
) -> Generator[OffsetDeleteResponseTopic | None, None, None]:
    """Delete a topic's offsets. Yields an answer for all partitions, after the last one."""
    view = broker.groups.topics
    topic_id = view.topic_id(topic.name)
    count = view.partition_count(topic.name)
    is_read = not group.is_empty and group.is_subscribed_to(topic.name)
    response = OffsetDeleteResponseTopic(name=topic.name)
    forgotten = []
    for partition in topic.partitions:
        code = ErrorCode.NONE
        if not allowed:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic_id is None or not 0 <= partition.partition_index < count:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif is_read:
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            forgotten.append((topic_id, partition.partition_index))
        response.partitions.append(
            OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=code)
        )
        yield None
    broker.groups.offsets.delete(group.group_id, forgotten)
    yield response
