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
Differs from Kafka:
    * After a restart the partitions of internal topics are told at once; Kafka tells 0 until a heartbeat.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.described_groups import GroupKind, described_groups, element_of
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import STREAMS_VERSION
from odradek.group.streams_protocol import describe, topology_topics
from odradek.plugin.context import RequestContext
from odradek.wire.messages.streams_group_describe import (
    DescribedStreamsGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

STREAMS_GROUPS = GroupKind(STREAMS_VERSION, DescribedStreamsGroup, describe, topology_topics)
NO_PLUGIN = 1
"""Value of ``topology_description_status``."""


@answers(StreamsGroupDescribeRequest, refuses="group_ids", each="groups", droppable=True)
def streams_group_describe(
    request: StreamsGroupDescribeRequest, context: RequestContext, broker: Broker
) -> Generator[Any, None, StreamsGroupDescribeResponse]:
    for group in described_groups(STREAMS_GROUPS, request, context, broker):
        if group is not None and request.include_topology_description and not element_of(group).error_code:
            element_of(group).topology_description_status = NO_PLUGIN
        yield group
    return StreamsGroupDescribeResponse()
