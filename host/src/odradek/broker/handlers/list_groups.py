"""ListGroups v0-v5: groups of both protocols.

Behavior:
    * Groups that the client may not see are left out.
    * An empty filter matches everything. Names of states and types are compared without regard to case.
Versions:
    * v4: filter by state. v5: filter by type (KIP-848).
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


@answers(ListGroupsRequest, each="groups", droppable=True)
def list_groups(
    request: ListGroupsRequest, context: RequestContext, broker: Broker
) -> Generator[ListedGroup | None, None, ListGroupsResponse]:
    states = {state.lower() for state in request.states_filter}
    rights = broker.authorization.rights(
        context,
        AclOperation.DESCRIBE,
        ResourceType.GROUP,
        or_on_cluster=AclOperation.DESCRIBE,
        logs=False,
    )
    types = {name.lower() for name in request.types_filter}
    for group in list(broker.groups):
        if (states and group.state_name.lower() not in states) or (types and group.group_type not in types):
            yield None
            continue
        if not rights.allows(group.group_id):
            yield None
            continue
        yield ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.group_type,
        )
    return ListGroupsResponse()
