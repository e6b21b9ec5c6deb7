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

from collections.abc import Generator
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.described_groups import GroupKind, described_groups
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import GROUP_VERSION
from odradek.group.consumer_protocol import assigned_topics, describe
from odradek.plugin.context import RequestContext
from odradek.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

CONSUMER_GROUPS = GroupKind(GROUP_VERSION, DescribedGroup, describe, assigned_topics)


@answers(ConsumerGroupDescribeRequest, refuses="group_ids", each="groups", droppable=True)
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: RequestContext, broker: Broker
) -> Generator[Any, None, ConsumerGroupDescribeResponse]:
    yield from described_groups(CONSUMER_GROUPS, request, context, broker)
    return ConsumerGroupDescribeResponse()
