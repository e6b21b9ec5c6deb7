"""ElectLeaders, API key 43 (KIP-460).

Source: ElectLeadersRequest.json and ElectLeadersResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int8, Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class TopicPartitions:
    """One of `ElectLeadersRequest.topic_partitions`."""

    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class PartitionResult:
    """One of `ReplicaElectionResult.partition_result`."""

    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


@dataclass(slots=True, kw_only=True)
class ReplicaElectionResult:
    """One of `ElectLeadersResponse.replica_election_results`."""

    topic: String = ""
    partition_result: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ElectLeadersRequest:
    """Elect leaders, preferred or unclean."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    election_type: Annotated[Int8, since(1)] = 0
    """0 preferred, 1 unclean."""
    topic_partitions: list[TopicPartitions] | None = field(default_factory=list)
    """Null for all."""
    timeout_ms: Int32 = 60000


@dataclass(slots=True, kw_only=True)
class ElectLeadersResponse:
    """Answer to `ElectLeadersRequest`."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = field(default_factory=list)
