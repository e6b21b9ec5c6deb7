"""ListOffsets, API key 2 (KIP-79).

Source: ListOffsetsRequest.json and ListOffsetsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int8, Int16, Int32, Int64, Message, String, Struct, between, since


class ListOffsetsPartition(Struct):
    """One of `ListOffsetsTopic.partitions`."""

    partition_index: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(4)] = -1
    """The leader epoch that the client knows; -1 if it knows none."""
    timestamp: Int64 = 0
    """In ms; -1 latest, -2 earliest, -3 of largest timestamp, -4 earliest local, -5 latest tiered."""


class ListOffsetsTopic(Struct):
    """One of `ListOffsetsRequest.topics`."""

    name: String = ""
    partitions: list[ListOffsetsPartition] = field(default_factory=list)


class ListOffsetsPartitionResponse(Struct):
    """One of `ListOffsetsTopicResponse.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    """In ms; -1 if there is none."""
    offset: Int64 = -1
    """-1 if no record is that late."""
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListOffsetsTopicResponse(Struct):
    """One of `ListOffsetsResponse.topics`."""

    name: String = ""
    partitions: list[ListOffsetsPartitionResponse] = field(default_factory=list)


class ListOffsetsRequest(Message, api_key=2, versions=between(1, 11), flexible=since(6)):
    """Look up offsets by timestamp."""

    replica_id: Int32 = 0
    """Broker id of a follower, -1 for a consumer."""
    isolation_level: Annotated[Int8, since(2)] = 0
    """0 reads everything, 1 committed transactions only."""
    topics: list[ListOffsetsTopic] = field(default_factory=list)
    timeout_ms: Annotated[Int32, since(10)] = 0
    """How long to wait for an answer from remote storage."""


class ListOffsetsResponse(Message, answers=ListOffsetsRequest):
    """Answer to `ListOffsetsRequest`."""

    throttle_time_ms: Annotated[Int32, since(2)] = 0
    topics: list[ListOffsetsTopicResponse] = field(default_factory=list)
