"""DescribeTopicPartitions v0 (KIP-966).

Behavior:
    * Topics by name, in the order of their names; no names ask for all.
    * At most ``response_partition_limit`` partitions, and never more than 2000. The next cursor points to the
      partition that follows, or to a topic that does not exist.
    * A cursor continues an earlier answer. If its topic is not among the named ones, or its partition is
      negative: INVALID_REQUEST.
    * There is one replica, which leads and is in sync; no other replica is eligible. It is offline and does
      not lead if its log directory is offline.
Differs from Kafka:
    * An empty name is INVALID_TOPIC_EXCEPTION; Kafka answers UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.nodes import Nodes
from odradek.broker.topics import LEADER_EPOCH, NO_LEADER, Topic, fault_of
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

MAX_PARTITIONS_OF_ANSWER = 2000  # max.request.partition.size.limit


@answers(DescribeTopicPartitionsRequest, refuses="topics", each="topics", droppable=True)
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: RequestContext, broker: Broker
) -> Generator[DescribeTopicPartitionsResponseTopic | None, None, DescribeTopicPartitionsResponse]:
    cursor = request.cursor or Cursor()
    names = wanted(request, cursor, broker)
    room = max(min(request.response_partition_limit, MAX_PARTITIONS_OF_ANSWER), 1)
    response = DescribeTopicPartitionsResponse()
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    unseen = []
    for name in names:
        if not rights.allows(name):
            unseen.append(name)
            yield None
            continue
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        first = cursor.partition_index if name == cursor.topic_name else 0
        shown = described(name, first, room, broker)
        shown.topic_authorized_operations = broker.authorization.operations(context, ResourceType.TOPIC, name)
        yield shown
        room -= len(shown.partitions)
        end, topic = first + len(shown.partitions), broker.topics.named(name)
        if topic is not None and end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    for name in unseen if request.topics else ():
        yield DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    return response


def wanted(request: DescribeTopicPartitionsRequest, cursor: Cursor, broker: Broker) -> list[str]:
    """The names from the cursor on.

    Raises:
        ApiError: INVALID_REQUEST: a cursor that points nowhere.
    """
    asked = {topic.name for topic in request.topics}
    if request.cursor is not None and (
        cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    every: Iterable[str] = asked or broker.topics.by_name
    return sorted(name for name in every if name >= cursor.topic_name)


def described(name: str, first: int, room: int, broker: Broker) -> DescribeTopicPartitionsResponseTopic:
    """One topic with some of its partitions."""
    topic = broker.topics.named(name)
    if topic is None:
        illegal = fault_of(name) is not None
        return DescribeTopicPartitionsResponseTopic(
            error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if illegal else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            name=name,
        )
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions(topic, first, room, broker.nodes),
    )


def partitions(
    topic: Topic, first: int, room: int, nodes: Nodes
) -> list[DescribeTopicPartitionsResponsePartition]:
    """The partitions from one on, up to the limit."""
    return [
        DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=NO_LEADER if log.offline else node_id,
            leader_epoch=LEADER_EPOCH,
            replica_nodes=[node_id],
            isr_nodes=[node_id],
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=[node_id] if log.offline else [],
        )
        for index, log in enumerate(topic.partitions[first : first + room], first)
        for node_id in (nodes.leader(topic.name, index),)
    ]
