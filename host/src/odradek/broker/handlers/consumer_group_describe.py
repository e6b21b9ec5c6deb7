"""ConsumerGroupDescribe v0-v1 (KIP-848).

Behavior:
    * State, epochs, assignor and members, each with its current and target assignment, by topic id and name.
    * An unknown group, or a classic one, is GROUP_ID_NOT_FOUND; admin clients then send DescribeGroups. The
      group id "" is INVALID_GROUP_ID.
    * A group that is named twice is answered once.
    * Authorized operations are all those of a group: no client is restricted.
    * With ``group.version`` 0 every group is UNSUPPORTED_VERSION.
Versions:
    * v1: the type of each member (KIP-1099): 1, or 0 for one that speaks the classic protocol.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.authorized_operations import GROUP_OPERATIONS, NOT_ASKED_FOR
from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import GROUP_VERSION
from odradek.group.consumer_protocol import describe
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def refuse(
    request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str | None
) -> ConsumerGroupDescribeResponse:
    """The same error for every group."""
    return ConsumerGroupDescribeResponse(
        groups=[refused(group_id, code, message) for group_id in request.group_ids]
    )


@answers(
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, refusal=refuse, each="groups", droppable=True
)
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: RequestContext, broker: Broker
) -> Generator[DescribedGroup | Composed, None, ConsumerGroupDescribeResponse]:
    if broker.features.level(GROUP_VERSION) < 1:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED_FOR
    for group_id in dict.fromkeys(request.group_ids):
        yield described(group_id, operations, broker)
    return ConsumerGroupDescribeResponse()


def refused(group_id: str, code: ErrorCode, message: str | None) -> DescribedGroup:
    """The error of one group."""
    return DescribedGroup(group_id=group_id, error_code=code, error_message=message)


def described(group_id: str, operations: int, broker: Broker) -> DescribedGroup | Composed:
    """One group, or its error."""
    try:
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        group, members = describe(broker.groups, group_id)
    except ApiError as error:
        return refused(group_id, error.code, error.message)
    group.authorized_operations = operations
    return composed(group, "members", members)
