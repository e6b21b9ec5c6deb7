"""DescribeProducers, API key 61 (KIP-664).

Source: DescribeProducersRequest.json and DescribeProducersResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Int16, Int32, Int64, String, Versions, only, since


@dataclass(slots=True, kw_only=True)
class TopicRequest:
    """One of `DescribeProducersRequest.topics`."""

    name: String = ""
    partition_indexes: list[Int32] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ProducerState:
    """One of `PartitionResponse.active_producers`."""

    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


@dataclass(slots=True, kw_only=True)
class PartitionResponse:
    """One of `TopicResponse.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: list[ProducerState] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TopicResponse:
    """One of `DescribeProducersResponse.topics`."""

    name: String = ""
    partitions: list[PartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeProducersRequest:
    """List the producers that are active on partitions."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    topics: list[TopicRequest] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeProducersResponse:
    """Answer to `DescribeProducersRequest`."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = field(default_factory=list)
