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
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.described_groups import GroupKind, described_groups
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import SHARE_VERSION
from odradek.group.share_protocol import assigned_topics, describe
from odradek.plugin.context import RequestContext
from odradek.wire.messages.share_group_describe import (
    DescribedShareGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

SHARE_GROUPS = GroupKind(SHARE_VERSION, DescribedShareGroup, describe, assigned_topics)


@answers(ShareGroupDescribeRequest, refuses="group_ids", each="groups", droppable=True)
def share_group_describe(
    request: ShareGroupDescribeRequest, context: RequestContext, broker: Broker
) -> Generator[Any, None, ShareGroupDescribeResponse]:
    yield from described_groups(SHARE_GROUPS, request, context, broker)
    return ShareGroupDescribeResponse()
