"""DeleteRecords, API key 21 (KIP-107).

Source: DeleteRecordsRequest.json and DeleteRecordsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Int16, Int32, Int64, Message, String, Struct, between, since


class DeleteRecordsPartition(Struct):
    """One of `DeleteRecordsTopic.partitions`."""

    partition_index: Int32 = 0
    offset: Int64 = 0
    """-1 means the high watermark."""


class DeleteRecordsTopic(Struct):
    """One of `DeleteRecordsRequest.topics`."""

    name: String = ""
    partitions: list[DeleteRecordsPartition] = field(default_factory=list)


class DeleteRecordsPartitionResult(Struct):
    """One of `DeleteRecordsTopicResult.partitions`."""

    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


class DeleteRecordsTopicResult(Struct):
    """One of `DeleteRecordsResponse.topics`."""

    name: String = ""
    partitions: list[DeleteRecordsPartitionResult] = field(default_factory=list)


class DeleteRecordsRequest(Message, api_key=21, versions=between(0, 2), flexible=since(2)):
    """Delete the records before an offset."""

    topics: list[DeleteRecordsTopic] = field(default_factory=list)
    timeout_ms: Int32 = 0


class DeleteRecordsResponse(Message, answers=DeleteRecordsRequest):
    """Answer to `DeleteRecordsRequest`."""

    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = field(default_factory=list)
