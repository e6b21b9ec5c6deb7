"""OffsetForLeaderEpoch, API key 23 (KIP-101).

Source: OffsetForLeaderEpochRequest.json and OffsetForLeaderEpochResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int16, Int32, Int64, Message, String, Struct, between, since


class OffsetForLeaderPartition(Struct):
    """One of `OffsetForLeaderTopic.partitions`."""

    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(Struct):
    """One of `OffsetForLeaderEpochRequest.topics`."""

    topic: String = ""
    partitions: list[OffsetForLeaderPartition] = field(default_factory=list)


class EpochEndOffset(Struct):
    """One of `OffsetForLeaderTopicResult.partitions`."""

    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Struct):
    """One of `OffsetForLeaderEpochResponse.topics`."""

    topic: String = ""
    partitions: list[EpochEndOffset] = field(default_factory=list)


class OffsetForLeaderEpochRequest(Message, api_key=23, versions=between(2, 4), flexible=since(4)):
    """Find where leader epochs end, to detect truncation."""

    replica_id: Annotated[Int32, since(3)] = -2
    topics: list[OffsetForLeaderTopic] = field(default_factory=list)


class OffsetForLeaderEpochResponse(Message, answers=OffsetForLeaderEpochRequest):
    """Answer to `OffsetForLeaderEpochRequest`."""

    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult] = field(default_factory=list)
