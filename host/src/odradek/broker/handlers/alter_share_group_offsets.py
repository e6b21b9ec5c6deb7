"""AlterShareGroupOffsets v0 (KIP-932).

Behavior:
    * Sets the start offsets of a group without members; -1 lets its reset policy decide. An unknown group is
      made.
    * A group with members is NON_EMPTY_GROUP, one of another type GROUP_ID_NOT_FOUND. An unknown topic or
      partition is UNKNOWN_TOPIC_OR_PARTITION.
    * An offset is not compared with the log.
    * With ``share.version`` 0 the answer is UNSUPPORTED_VERSION.
Versions:
    * v0: the only one.
Differs from Kafka:
    * The offsets hold at once. In Kafka 4.4.0 they hold when the last connection that read for the group is
      closed.
    * A new group beyond ``groups.max`` is POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import SHARE_VERSION
from odradek.group.committed_offset import TopicPartition
from odradek.group.share_offsets import alter, group_to_alter
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_share_group_offsets import (
    AlteredPartitionResult,
    AlteredTopic,
    AlteredTopicResult,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from odradek.wire.types import NIL_UUID


@answers(AlterShareGroupOffsetsRequest, each="responses")
def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, context: RequestContext, broker: Broker
) -> Generator[AlteredTopicResult | None, None, AlterShareGroupOffsetsResponse]:
    broker.features.require(SHARE_VERSION)
    broker.authorization.require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    broker.check_new_group(request.group_id)
    group_to_alter(broker.groups, request.group_id)
    rights = broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC)
    offsets: dict[TopicPartition, int] = {}
    results = []
    for topic in request.topics:
        results.append(AlteredTopicResult(topic_name=topic.topic_name))
        yield from check(topic, results[-1], offsets, broker, allowed=rights.allows(topic.topic_name))
    alter(broker.groups, group_to_alter(broker.groups, request.group_id), offsets)
    yield from results
    return AlterShareGroupOffsetsResponse()


def check(
    topic: AlteredTopic,
    result: AlteredTopicResult,
    offsets: dict[TopicPartition, int],
    broker: Broker,
    *,
    allowed: bool,
) -> Iterator[None]:
    """Take the offsets of a topic's partitions that exist, and fill in the answer."""
    topic_id = broker.groups.topics.topic_id(topic.topic_name) if allowed else None
    count = broker.groups.topics.partition_count(topic.topic_name)
    result.topic_id = topic_id or NIL_UUID
    for partition in topic.partitions:
        code = ErrorCode.NONE
        if not allowed:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic_id is None or not 0 <= partition.partition_index < count:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            offsets[topic_id, partition.partition_index] = partition.start_offset
        result.partitions.append(
            AlteredPartitionResult(partition_index=partition.partition_index, error_code=code)
        )
        yield None
