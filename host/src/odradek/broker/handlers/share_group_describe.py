"""ShareGroupDescribe v1 (KIP-932).

Behavior:
    * State, epochs, assignor and members, each with its assignment, by topic id and name.
    * An unknown group, or one of another type, is GROUP_ID_NOT_FOUND. The group id "" is INVALID_GROUP_ID.
    * A group that is named twice is answered once.
    * A group with a member that reads a topic that the client may not see is TOPIC_AUTHORIZATION_FAILED.
    * With ``share.version`` 0 every group is UNSUPPORTED_VERSION.
Versions:
    * v1: the only one.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import SHARE_VERSION
from odradek.broker.handlers.consumer_group_describe import UNSEEN_TOPICS, reads_unseen
from odradek.group.share_protocol import assigned_topics, describe
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.share_group_describe import (
    DescribedShareGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


@answers(ShareGroupDescribeRequest, refuses="group_ids", each="groups", droppable=True)
def share_group_describe(
    request: ShareGroupDescribeRequest, context: RequestContext, broker: Broker
) -> Generator[DescribedShareGroup | Composed | None, None, ShareGroupDescribeResponse]:
    broker.features.require(SHARE_VERSION)
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.GROUP)
    topics = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    for group_id in dict.fromkeys(request.group_ids):
        if not rights.allows(group_id):
            yield refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
            continue
        read = assigned_topics(broker.groups, group_id)
        unseen = broker.authorization.is_enabled and (yield from reads_unseen(read, topics, broker))
        group = refused(group_id, *UNSEEN_TOPICS) if unseen else described(group_id, broker)
        if request.include_authorized_operations:
            element = group.element if isinstance(group, Composed) else group
            if not element.error_code:
                element.authorized_operations = broker.authorization.operations(
                    context, ResourceType.GROUP, group_id
                )
        yield group
    return ShareGroupDescribeResponse()


def refused(group_id: str, code: ErrorCode, message: str | None) -> DescribedShareGroup:
    return DescribedShareGroup(group_id=group_id, error_code=code, error_message=message)


def described(group_id: str, broker: Broker) -> DescribedShareGroup | Composed:
    """One group, or its error."""
    try:
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        group, members = describe(broker.groups, group_id)
    except ApiError as error:
        return refused(group_id, error.code, error.message)
    return composed(group, "members", members)
