"""AlterShareGroupOffsets, API key 91 (KIP-932).

Source: AlterShareGroupOffsetsRequest.json and AlterShareGroupOffsetsResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import (
    NIL_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uuid,
    between,
    since,
)


class AlteredPartition(Struct):
    """One of `AlteredTopic.partitions`."""

    partition_index: Int32 = 0
    start_offset: Int64 = 0
    """-1 for where the group's reset policy says."""


class AlteredTopic(Struct):
    """One of `AlterShareGroupOffsetsRequest.topics`."""

    topic_name: String = ""
    partitions: list[AlteredPartition] = field(default_factory=list)


class AlteredPartitionResult(Struct):
    """One of `AlteredTopicResult.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


class AlteredTopicResult(Struct):
    """One of `AlterShareGroupOffsetsResponse.responses`."""

    topic_name: String = ""
    topic_id: Uuid = NIL_UUID
    partitions: list[AlteredPartitionResult] = field(default_factory=list)


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions=between(0, 0), flexible=since(0)):
    """Set the start offsets of an empty share group."""

    group_id: String = ""
    topics: list[AlteredTopic] = field(default_factory=list)


class AlterShareGroupOffsetsResponse(Message, answers=AlterShareGroupOffsetsRequest):
    """Answer to `AlterShareGroupOffsetsRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: list[AlteredTopicResult] = field(default_factory=list)
