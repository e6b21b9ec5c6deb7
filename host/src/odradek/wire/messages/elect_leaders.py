"""ElectLeaders, API key 43 (KIP-460).

Source: ElectLeadersRequest.json and ElectLeadersResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int8, Int16, Int32, Message, String, Struct, between, since


class TopicPartitions(Struct):
    """One of `ElectLeadersRequest.topic_partitions`."""

    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


class PartitionResult(Struct):
    """One of `ReplicaElectionResult.partition_result`."""

    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class ReplicaElectionResult(Struct):
    """One of `ElectLeadersResponse.replica_election_results`."""

    topic: String = ""
    partition_result: list[PartitionResult] = field(default_factory=list)


class ElectLeadersRequest(Message, api_key=43, versions=between(0, 2), flexible=since(2)):
    """Elect leaders, preferred or unclean."""

    election_type: Annotated[Int8, since(1)] = 0
    """0 preferred, 1 unclean."""
    topic_partitions: list[TopicPartitions] | None = field(default_factory=list)
    """Null for all."""
    timeout_ms: Int32 = 60000


class ElectLeadersResponse(Message, answers=ElectLeadersRequest):
    """Answer to `ElectLeadersRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = field(default_factory=list)
