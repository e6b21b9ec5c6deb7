"""DescribeGroups v0-v6: groups of the classic protocol.

Behavior:
    * Metadata and assignments are shown while the group is stable.
    * An unknown group, or one of another type, is Dead; from v6 on GROUP_ID_NOT_FOUND.
    * A group that is named twice is answered once.
Versions:
    * v3: authorized operations. v4: instance ids. v6: error messages.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial

from odradek.broker.broker import Broker
from odradek.broker.described_groups import visible_groups
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_member import ClassicMember
from odradek.group.classic_state import ClassicState
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NOT_FOUND_VERSION = 6


@answers(DescribeGroupsRequest, refuses="groups", each="groups", droppable=True)
def describe_groups(
    request: DescribeGroupsRequest, context: RequestContext, broker: Broker
) -> Generator[DescribedGroup | Composed | None, None, DescribeGroupsResponse]:
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.GROUP)
    seen = yield from visible_groups(
        request.groups,
        rights,
        lambda name: DescribedGroup(group_id=name, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED),
    )
    for name in seen:
        described = described_group(name, context.api_version, broker)
        if request.include_authorized_operations and not described.error_code:
            described.authorized_operations = broker.authorization.operations(
                context, ResourceType.GROUP, name
            )
        group = broker.groups.groups.get(name)
        yield composed(described, "members", members(group)) if isinstance(group, ClassicGroup) else described
    return DescribeGroupsResponse()


def described_group(name: str, version: int, broker: Broker) -> DescribedGroup:
    """One group, by its id."""
    group = broker.groups.groups.get(name)
    if isinstance(group, ClassicGroup):
        return classic_group(group)
    dead = DescribedGroup(group_id=name, group_state=ClassicState.DEAD)
    if version >= NOT_FOUND_VERSION:
        dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        dead.error_message = (
            f"Group {name} not found." if group is None else f"Group {name} is not a classic group."
        )
    return dead


def classic_group(group: ClassicGroup) -> DescribedGroup:
    """A group without its members."""
    protocol = protocol_of(group)
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
    )


def protocol_of(group: ClassicGroup) -> str | None:
    """The chosen protocol; None before a protocol is chosen."""
    return group.protocol_name if group.state is ClassicState.STABLE else None


def members(group: ClassicGroup) -> list[Callable[[], DescribedGroupMember]]:
    """Functions that describe each member."""
    protocol = protocol_of(group)
    return [partial(described_member, member, protocol) for member in group]


def described_member(member: ClassicMember, protocol: str | None) -> DescribedGroupMember:
    """One member. Before a protocol is chosen it has no metadata and no assignment."""
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=b"" if protocol is None else member.assignment,
    )
