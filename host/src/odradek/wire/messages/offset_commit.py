"""OffsetCommit, API key 8.

Source: OffsetCommitRequest.json and OffsetCommitResponse.json, Kafka 4.3.
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
    Uuid,
    between,
    since,
)


class OffsetCommitRequestPartition(Struct):
    """One of `OffsetCommitRequestTopic.partitions`."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(6)] = -1
    committed_metadata: String | None = ""


class OffsetCommitRequestTopic(Struct):
    """One of `OffsetCommitRequest.topics`."""

    name: Annotated[String, between(2, 9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NIL_UUID
    partitions: list[OffsetCommitRequestPartition] = field(default_factory=list)


class OffsetCommitResponsePartition(Struct):
    """One of `OffsetCommitResponseTopic.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Struct):
    """One of `OffsetCommitResponse.topics`."""

    name: Annotated[String, between(2, 9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NIL_UUID
    partitions: list[OffsetCommitResponsePartition] = field(default_factory=list)


class OffsetCommitRequest(Message, api_key=8, versions=between(2, 10), flexible=since(8)):
    """Store the offsets of a group."""

    group_id: String = ""
    generation_id_or_member_epoch: Int32 = -1
    """-1 outside a group."""
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(7)] = None
    retention_time_ms: Annotated[Int64, between(2, 4)] = -1
    """-1 for the broker's default."""
    topics: list[OffsetCommitRequestTopic] = field(default_factory=list)


class OffsetCommitResponse(Message, answers=OffsetCommitRequest):
    """Answer to `OffsetCommitRequest`."""

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: list[OffsetCommitResponseTopic] = field(default_factory=list)
