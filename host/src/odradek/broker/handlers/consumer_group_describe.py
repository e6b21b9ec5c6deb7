"""ConsumerGroupDescribe v0-v1 (KIP-848).

Behavior:
    * State, epochs, assignor and members, each with its current and target assignment, by topic id and name.
    * An unknown group, or a classic one, is GROUP_ID_NOT_FOUND; admin clients then send DescribeGroups. The
      group id "" is INVALID_GROUP_ID.
    * A group that is named twice is answered once.
    * A group with a member that reads, or will read, a topic that the client may not see is
      TOPIC_AUTHORIZATION_FAILED.
    * With ``group.version`` 0 every group is UNSUPPORTED_VERSION.
Versions:
    * v1: the type of each member (KIP-1099): 1, or 0 for one that speaks the classic protocol.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import GROUP_VERSION
from odradek.group.consumer_protocol import assigned_topics, describe
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

UNSEEN_TOPICS = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "The group has described topic(s) that the client is not authorized to describe.",
)


@answers(ConsumerGroupDescribeRequest, refuses="group_ids", each="groups", droppable=True)
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: RequestContext, broker: Broker
) -> Generator[DescribedGroup | Composed | None, None, ConsumerGroupDescribeResponse]:
    broker.features.require(GROUP_VERSION)
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.GROUP)
    topics = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    seen = []
    for group_id in dict.fromkeys(request.group_ids):
        if rights.allows(group_id):
            seen.append(group_id)
            yield None
        else:
            yield refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    for group_id in seen:
        unseen = broker.authorization.is_enabled and (
            yield from reads_unseen(assigned_topics(broker.groups, group_id), topics, broker)
        )
        group = refused(group_id, *UNSEEN_TOPICS) if unseen else described(group_id, broker)
        if request.include_authorized_operations:
            element = group.element if isinstance(group, Composed) else group
            if not element.error_code:
                element.authorized_operations = broker.authorization.operations(
                    context, ResourceType.GROUP, group_id
                )
        yield group
    return ConsumerGroupDescribeResponse()


def refused(group_id: str, code: ErrorCode, message: str | None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code, error_message=message)


def reads_unseen(
    read: Iterable[Iterable[bytes]], topics: Rights, broker: Broker
) -> Generator[None, None, bool]:
    """Whether a member of a group reads, or will read, a topic that the client may not see.

    Args:
        read: The ids of the topics of each member.
        topics: The rights of the client.
        broker: Has the topics.
    """
    names = broker.groups.topics
    for topic_ids in read:
        for name in map(names.topic_name, topic_ids):
            if name is not None and not topics.allows(name):
                return True
        yield
    return False


def described(group_id: str, broker: Broker) -> DescribedGroup | Composed:
    """One group, or its error."""
    try:
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        group, members = describe(broker.groups, group_id)
    except ApiError as error:
        return refused(group_id, error.code, error.message)
    return composed(group, "members", members)
