"""DescribeShareGroupOffsets v0-v1 (KIP-932, KIP-1226).

Behavior:
    * Null topics stand for all partitions that the group knows; those of topics that the client may not see
      are left out. A named topic that it may not see is TOPIC_AUTHORIZATION_FAILED.
    * The start offset is the stored one. It and the lag are -1 where nothing was delivered yet, and for
      unknown topics and groups, without an error.
    * With ``share.version`` 0 every group is UNSUPPORTED_VERSION.
Versions:
    * v1: the lag: the records from the start offset on that are not done.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import SHARE_VERSION
from odradek.group.share_offsets import known_partitions, position
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_share_group_offsets import (
    DescribedShareOffset,
    DescribedShareOffsets,
    DescribedShareTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareOffsetsGroup,
)
from odradek.wire.types import NIL_UUID

UNKNOWN = -1


@answers(DescribeShareGroupOffsetsRequest, refuses="groups", each="groups", droppable=True)
def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, context: RequestContext, broker: Broker
) -> Generator[DescribedShareOffsets | None, None, DescribeShareGroupOffsetsResponse]:
    broker.features.require(SHARE_VERSION)
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.GROUP)
    topics = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    for group in request.groups:
        described = DescribedShareOffsets(group_id=group.group_id)
        if rights.allows(group.group_id):
            for name, partitions in wanted(group, topics, broker):
                described.topics.append(DescribedShareTopic(topic_name=name))
                yield from describe_topic(group.group_id, described.topics[-1], partitions, topics, broker)
        else:
            described.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        yield described
    return DescribeShareGroupOffsetsResponse()


def wanted(group: ShareOffsetsGroup, rights: Rights, broker: Broker) -> Iterator[tuple[str, Iterable[int]]]:
    """The topics that are asked for, each with its partitions."""
    if group.topics is not None:
        for topic in group.topics:
            yield topic.topic_name, topic.partitions
        return
    for topic_id, indexes in sorted(known_partitions(broker.groups, group.group_id).items()):
        name = broker.groups.topics.topic_name(topic_id)
        if name is not None and rights.allows(name):
            yield name, sorted(indexes)


def describe_topic(
    group_id: str, described: DescribedShareTopic, partitions: Iterable[int], rights: Rights, broker: Broker
) -> Iterator[None]:
    """Add the partitions of a topic, one at a time."""
    is_seen = rights.allows(described.topic_name)
    topic_id = broker.groups.topics.topic_id(described.topic_name) if is_seen else None
    described.topic_id = NIL_UUID if topic_id is None else topic_id
    for index in partitions:
        row = DescribedShareOffset(partition_index=index, start_offset=UNKNOWN, lag=UNKNOWN)
        if not is_seen:
            row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic_id is not None:
            describe_partition(group_id, topic_id, row, broker)
        described.partitions.append(row)
        yield None


def describe_partition(group_id: str, topic_id: bytes, row: DescribedShareOffset, broker: Broker) -> None:
    """Add the start offset and the lag of a partition, if anything of it was delivered."""
    topic = broker.topics.by_id.get(topic_id)
    found = position(broker.groups, group_id, (topic_id, row.partition_index))
    if found is None or topic is None or not 0 <= row.partition_index < len(topic.partitions):
        return
    row.start_offset, completed = found
    row.lag = topic.partitions[row.partition_index].high_watermark - row.start_offset - completed
