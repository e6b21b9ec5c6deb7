"""DescribeProducers, API key 61 (KIP-664).

Source: DescribeProducersRequest.json and DescribeProducersResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Int16, Int32, Int64, Message, String, Struct, only, since


class TopicRequest(Struct):
    """One of `DescribeProducersRequest.topics`."""

    name: String = ""
    partition_indexes: list[Int32] = field(default_factory=list)


class ProducerState(Struct):
    """One of `PartitionResponse.active_producers`."""

    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Struct):
    """One of `TopicResponse.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: list[ProducerState] = field(default_factory=list)


class TopicResponse(Struct):
    """One of `DescribeProducersResponse.topics`."""

    name: String = ""
    partitions: list[PartitionResponse] = field(default_factory=list)


class DescribeProducersRequest(Message, api_key=61, versions=only(0), flexible=since(0)):
    """List the producers that are active on partitions."""

    topics: list[TopicRequest] = field(default_factory=list)


class DescribeProducersResponse(Message, answers=DescribeProducersRequest):
    """Answer to `DescribeProducersRequest`."""

    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = field(default_factory=list)
