"""OffsetForLeaderEpoch, API key 23 (KIP-101).

Source: OffsetForLeaderEpochRequest.json and OffsetForLeaderEpochResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int16, Int32, Int64, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderPartition:
    """One of `OffsetForLeaderTopic.partitions`."""

    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderTopic:
    """One of `OffsetForLeaderEpochRequest.topics`."""

    topic: String = ""
    partitions: list[OffsetForLeaderPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class EpochEndOffset:
    """One of `OffsetForLeaderTopicResult.partitions`."""

    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderTopicResult:
    """One of `OffsetForLeaderEpochResponse.topics`."""

    topic: String = ""
    partitions: list[EpochEndOffset] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    """Find where leader epochs end, to detect truncation."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[Versions] = between(2, 4)
    FLEXIBLE: ClassVar[Versions] = since(4)

    replica_id: Annotated[Int32, since(3)] = -2
    topics: list[OffsetForLeaderTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochResponse:
    """Answer to `OffsetForLeaderEpochRequest`."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[Versions] = between(2, 4)
    FLEXIBLE: ClassVar[Versions] = since(4)

    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult] = field(default_factory=list)
