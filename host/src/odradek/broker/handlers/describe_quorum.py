"""DescribeQuorum v0-v2 (KIP-595, KIP-836, KIP-853).

Behavior:
    * This node is the only voter of ``__cluster_metadata``, and its leader. There is no such log: its end is
      0, and the voter has always caught up.
    * A request for anything but partition 0 of that topic is UNKNOWN_TOPIC_OR_PARTITION.
Versions:
    * v1: the time of the voter's fetch. v2: error messages, and the voter's address, which is that of the
      listener in use.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.topics import CLUSTER_METADATA_TOPIC
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.error_text import UNKNOWN_PARTITION
from odradek.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)

LEADER_EPOCH = 1


@answers(DescribeQuorumRequest, each="topics", droppable=True)
def describe_quorum(
    request: DescribeQuorumRequest, context: RequestContext, broker: Broker
) -> Generator[ResponseTopicData | None, None, DescribeQuorumResponse]:
    broker.authorization.require_on_cluster(context, AclOperation.DESCRIBE)
    asked = [
        (topic.topic_name, [row.partition_index for row in topic.partitions]) for topic in request.topics
    ]
    if asked != [(CLUSTER_METADATA_TOPIC, [0])]:
        for topic in request.topics:
            yield from unknown(topic)
        return DescribeQuorumResponse()
    node_id = broker.settings.node_id
    endpoint = broker.endpoint(context.connection)
    listener = Listener(name=context.connection.listener_name, host=endpoint.host, port=endpoint.port)
    yield ResponseTopicData(
        topic_name=CLUSTER_METADATA_TOPIC, partitions=[quorum(node_id, context.received_ms)]
    )
    return DescribeQuorumResponse(nodes=[Node(node_id=node_id, listeners=[listener])])


def unknown(topic: RequestTopicData) -> Generator[ResponseTopicData | None, None, None]:
    """Partitions that have no quorum."""
    answered = ResponseTopicData(topic_name=topic.topic_name)
    for partition in topic.partitions:
        answered.partitions.append(
            ResponsePartitionData(
                partition_index=partition.partition_index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message=UNKNOWN_PARTITION,
            )
        )
        yield None
    yield answered


def quorum(node_id: int, now_ms: int) -> ResponsePartitionData:
    """One voter, which leads."""
    voter = ReplicaState(replica_id=node_id, last_fetch_timestamp=now_ms, last_caught_up_timestamp=now_ms)
    return ResponsePartitionData(leader_id=node_id, leader_epoch=LEADER_EPOCH, current_voters=[voter])
