"""Produce, API key 0.

Source: ProduceRequest.json and ProduceResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.messages.fetch import LeaderIdAndEpoch as LeaderIdAndEpoch
from odradek.wire.messages.fetch import NodeEndpoint as NodeEndpoint
from odradek.wire.types import (
    NIL_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Struct,
    Uuid,
    between,
    since,
    tag,
)


class PartitionProduceData(Struct):
    """One of `TopicProduceData.partition_data`."""

    index: Int32 = 0
    records: Records | None = b""
    """Consecutive record batches; a broker accepts exactly one."""


class TopicProduceData(Struct):
    """One of `ProduceRequest.topic_data`."""

    name: Annotated[String, between(3, 12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NIL_UUID
    partition_data: list[PartitionProduceData] = field(default_factory=list)


class BatchIndexAndErrorMessage(Struct):
    """One of `PartitionProduceResponse.record_errors`."""

    batch_index: Int32 = 0
    """Position of the record in its batch."""
    batch_index_error_message: String | None = None


class PartitionProduceResponse(Struct):
    """One of `TopicProduceResponse.partition_responses`."""

    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    """Offset of the first record."""
    log_append_time_ms: Int64 = -1
    """Log append time if the topic uses it, else -1."""
    log_start_offset: Annotated[Int64, since(5)] = -1
    """-1 if unknown."""
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8)] = field(default_factory=list)
    """The records that caused the refusal of the batch."""
    error_message: Annotated[String | None, since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, tag(0, since(10))] = field(default_factory=LeaderIdAndEpoch)
    """The leader to write to instead, on NOT_LEADER_OR_FOLLOWER."""


class TopicProduceResponse(Struct):
    """One of `ProduceResponse.responses`."""

    name: Annotated[String, between(3, 12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NIL_UUID
    partition_responses: list[PartitionProduceResponse] = field(default_factory=list)


class ProduceRequest(Message, api_key=0, versions=between(3, 13), flexible=since(9)):
    """Append record batches to partitions."""

    transactional_id: String | None = None
    """Null outside transactions."""
    acks: Int16 = 0
    """0 none, and no response at all; 1 leader; -1 all in-sync replicas."""
    timeout_ms: Int32 = 0
    """How long to wait for the replicas."""
    topic_data: list[TopicProduceData] = field(default_factory=list)


class ProduceResponse(Message, answers=ProduceRequest):
    """Answer to `ProduceRequest`."""

    responses: list[TopicProduceResponse] = field(default_factory=list)
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], tag(0, since(10))] = field(default_factory=list)
    """Addresses of the leaders named in ``current_leader``."""
