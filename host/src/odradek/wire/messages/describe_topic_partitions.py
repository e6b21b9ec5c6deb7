"""DescribeTopicPartitions, API key 75 (KIP-966).

Source: DescribeTopicPartitionsRequest.json and DescribeTopicPartitionsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    only,
    since,
)


class TopicRequest(Struct):
    """One of `DescribeTopicPartitionsRequest.topics`."""

    name: String = ""


class Cursor(Struct):
    """The start of a page."""

    topic_name: String = ""
    partition_index: Int32 = 0


class DescribeTopicPartitionsResponsePartition(Struct):
    """One of `DescribeTopicPartitionsResponseTopic.partitions`."""

    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32] = field(default_factory=list)
    isr_nodes: list[Int32] = field(default_factory=list)
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32] = field(default_factory=list)


class DescribeTopicPartitionsResponseTopic(Struct):
    """One of `DescribeTopicPartitionsResponse.topics`."""

    error_code: Int16 = 0
    name: String | None = ""
    topic_id: Uuid = NIL_UUID
    is_internal: Bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(default_factory=list)
    topic_authorized_operations: Int32 = -0x8000_0000
    """A bit per `AclOperation`; the default means that it was not asked for."""


class DescribeTopicPartitionsRequest(Message, api_key=75, versions=only(0), flexible=since(0)):
    """Describe topics, a page at a time."""

    topics: list[TopicRequest] = field(default_factory=list)
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None
    """The page to return; null for the first."""


class DescribeTopicPartitionsResponse(Message, answers=DescribeTopicPartitionsRequest):
    """Answer to `DescribeTopicPartitionsRequest`."""

    throttle_time_ms: Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list)
    next_cursor: Cursor | None = None
    """Null on the last page."""
