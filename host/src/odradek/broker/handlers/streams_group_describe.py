"""StreamsGroupDescribe v0-v1 (KIP-1071).

Behavior:
    * State, epochs, topology and members, each with its current tasks and those of its target. Internal
      topics have the numbers of partitions that were decided.
    * An unknown group, or one of another kind, is GROUP_ID_NOT_FOUND. The group id "" is INVALID_GROUP_ID.
    * A group that is named twice is answered once.
    * A group with a topic that the client may not see is TOPIC_AUTHORIZATION_FAILED.
    * With ``streams.version`` 0 every group is UNSUPPORTED_VERSION.
Versions:
    * v1: the assignor; and whether there is a description of the topology: nobody keeps one, as in Kafka
      without a plugin.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import STREAMS_VERSION
from odradek.broker.handlers.consumer_group_describe import UNSEEN_TOPICS
from odradek.group.streams_group import StreamsGroup
from odradek.group.streams_protocol import describe
from odradek.group.streams_topics import required_topics
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.streams_group_describe import (
    DescribedStreamsGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

NO_PLUGIN = 1
"""Value of ``topology_description_status``."""


@answers(StreamsGroupDescribeRequest, refuses="group_ids", each="groups", droppable=True)
def streams_group_describe(
    request: StreamsGroupDescribeRequest, context: RequestContext, broker: Broker
) -> Generator[DescribedStreamsGroup | Composed | None, None, StreamsGroupDescribeResponse]:
    broker.features.require(STREAMS_VERSION)
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.GROUP)
    topics = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    for group_id in dict.fromkeys(request.group_ids):
        if not rights.allows(group_id):
            yield refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
            continue
        unseen = broker.authorization.is_enabled and has_unseen(group_id, topics, broker)
        group = refused(group_id, *UNSEEN_TOPICS) if unseen else described(group_id, broker)
        element = group.element if isinstance(group, Composed) else group
        element.topology_description_status = NO_PLUGIN if request.include_topology_description else 0
        if request.include_authorized_operations and not element.error_code:
            element.authorized_operations = broker.authorization.operations(
                context, ResourceType.GROUP, group_id
            )
        yield group
    return StreamsGroupDescribeResponse()


def refused(group_id: str, code: ErrorCode, message: str | None) -> DescribedStreamsGroup:
    return DescribedStreamsGroup(group_id=group_id, error_code=code, error_message=message)


def has_unseen(group_id: str, topics: Rights, broker: Broker) -> bool:
    """Whether the topology of the group has a topic that the client may not see."""
    group = broker.groups.groups.get(group_id)
    if not isinstance(group, StreamsGroup) or group.topology is None:
        return False
    return not all(topics.allows(name) for name in required_topics(group.topology))


def described(group_id: str, broker: Broker) -> DescribedStreamsGroup | Composed:
    """One group, or its error."""
    try:
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        group, members = describe(broker.groups, group_id)
    except ApiError as error:
        return refused(group_id, error.code, error.message)
    return composed(group, "members", members)
