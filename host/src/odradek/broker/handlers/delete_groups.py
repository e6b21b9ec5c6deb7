"""DeleteGroups v0-v3: groups of both protocols, with their offsets.

Behavior:
    * A group with members is NON_EMPTY_GROUP, an unknown one GROUP_ID_NOT_FOUND.
    * A group that is named twice is deleted once, and answered once.
Versions:
    * v3: error messages. Only a group that the host itself reads, and a failed request, have one.
Differs from Kafka:
    * A group whose only pending member left never had a member: it goes with the member id, and is
      GROUP_ID_NOT_FOUND. Kafka keeps it, empty, and deletes it.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


@answers(DeleteGroupsRequest, refuses="groups_names", each="results")
def delete_groups(
    request: DeleteGroupsRequest, context: RequestContext, broker: Broker
) -> Generator[DeletableGroupResult, None, DeleteGroupsResponse]:
    rights = broker.authorization.rights(context, AclOperation.DELETE, ResourceType.GROUP)
    for name in dict.fromkeys(request.groups_names):
        if rights.allows(name):
            yield deleted(name, broker)
        else:
            yield DeletableGroupResult(group_id=name, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return DeleteGroupsResponse()


def deleted(name: str, broker: Broker) -> DeletableGroupResult:
    """Delete one group. Returns its result."""
    try:
        broker.groups.group(name).validate_delete()
        if name in broker.groups.offsets.owned:
            return DeletableGroupResult(
                group_id=name,
                error_code=ErrorCode.NON_EMPTY_GROUP,
                error_message=f"The host itself is the consumer in group {name}.",
            )
        broker.groups.remove(name)
    except ApiError as error:
        return DeletableGroupResult(group_id=name, error_code=error.code)
    return DeletableGroupResult(group_id=name)
