"""OffsetCommit, API key 8.

Source: OffsetCommitRequest.json and OffsetCommitResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import NIL_UUID, Int16, Int32, Int64, String, Uuid, Versions, between, since


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestPartition:
    """One of `OffsetCommitRequestTopic.partitions`."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(6)] = -1
    committed_metadata: String | None = ""


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestTopic:
    """One of `OffsetCommitRequest.topics`."""

    name: Annotated[String, between(2, 9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NIL_UUID
    partitions: list[OffsetCommitRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponsePartition:
    """One of `OffsetCommitResponseTopic.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponseTopic:
    """One of `OffsetCommitResponse.topics`."""

    name: Annotated[String, between(2, 9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NIL_UUID
    partitions: list[OffsetCommitResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequest:
    """Store the offsets of a group."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[Versions] = between(2, 10)
    FLEXIBLE: ClassVar[Versions] = since(8)

    group_id: String = ""
    generation_id_or_member_epoch: Int32 = -1
    """-1 outside a group."""
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(7)] = None
    retention_time_ms: Annotated[Int64, between(2, 4)] = -1
    """-1 for the broker's default."""
    topics: list[OffsetCommitRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponse:
    """Answer to `OffsetCommitRequest`."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[Versions] = between(2, 10)
    FLEXIBLE: ClassVar[Versions] = since(8)

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: list[OffsetCommitResponseTopic] = field(default_factory=list)
