"""DeleteRecords, API key 21 (KIP-107).

Source: DeleteRecordsRequest.json and DeleteRecordsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Int16, Int32, Int64, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class DeleteRecordsPartition:
    """One of `DeleteRecordsTopic.partitions`."""

    partition_index: Int32 = 0
    offset: Int64 = 0
    """-1 means the high watermark."""


@dataclass(slots=True, kw_only=True)
class DeleteRecordsTopic:
    """One of `DeleteRecordsRequest.topics`."""

    name: String = ""
    partitions: list[DeleteRecordsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteRecordsPartitionResult:
    """One of `DeleteRecordsTopicResult.partitions`."""

    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


@dataclass(slots=True, kw_only=True)
class DeleteRecordsTopicResult:
    """One of `DeleteRecordsResponse.topics`."""

    name: String = ""
    partitions: list[DeleteRecordsPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteRecordsRequest:
    """Delete the records before an offset."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    topics: list[DeleteRecordsTopic] = field(default_factory=list)
    timeout_ms: Int32 = 0


@dataclass(slots=True, kw_only=True)
class DeleteRecordsResponse:
    """Answer to `DeleteRecordsRequest`."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = field(default_factory=list)
