"""DescribeQuorum, API key 55 (KIP-595).

Source: DescribeQuorumRequest.json and DescribeQuorumResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    NIL_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    UInt16,
    Uuid,
    between,
    since,
)


class RequestPartitionData(Struct):
    """One of `RequestTopicData.partitions`."""

    partition_index: Int32 = 0


class RequestTopicData(Struct):
    """One of `DescribeQuorumRequest.topics`."""

    topic_name: String = ""
    partitions: list[RequestPartitionData] = field(default_factory=list)


class ReplicaState(Struct):
    """One of `ResponsePartitionData.current_voters` and `ResponsePartitionData.observers`."""

    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, since(2)] = NIL_UUID
    log_end_offset: Int64 = 0
    last_fetch_timestamp: Annotated[Int64, since(1)] = -1
    last_caught_up_timestamp: Annotated[Int64, since(1)] = -1


class ResponsePartitionData(Struct):
    """One of `ResponseTopicData.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(2)] = ""
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: list[ReplicaState] = field(default_factory=list)
    observers: list[ReplicaState] = field(default_factory=list)


class ResponseTopicData(Struct):
    """One of `DescribeQuorumResponse.topics`."""

    topic_name: String = ""
    partitions: list[ResponsePartitionData] = field(default_factory=list)


class Listener(Struct):
    """One of `Node.listeners`."""

    name: String = ""
    host: String = ""
    port: UInt16 = 0


class Node(Struct):
    """One of `DescribeQuorumResponse.nodes`."""

    node_id: Int32 = 0
    listeners: list[Listener] = field(default_factory=list)


class DescribeQuorumRequest(Message, api_key=55, versions=between(0, 2), flexible=since(0)):
    """Describe the voters and observers of KRaft partitions."""

    topics: list[RequestTopicData] = field(default_factory=list)


class DescribeQuorumResponse(Message, answers=DescribeQuorumRequest):
    """Answer to `DescribeQuorumRequest`."""

    error_code: Int16 = 0
    error_message: Annotated[String | None, since(2)] = ""
    topics: list[ResponseTopicData] = field(default_factory=list)
    nodes: Annotated[list[Node], since(2)] = field(default_factory=list)
