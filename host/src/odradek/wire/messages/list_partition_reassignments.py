"""ListPartitionReassignments, API key 46 (KIP-455).

Source: ListPartitionReassignmentsRequest.json and ListPartitionReassignmentsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Int16, Int32, String, Versions, only, since


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsTopics:
    """One of `ListPartitionReassignmentsRequest.topics`."""

    name: String = ""
    partition_indexes: list[Int32] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OngoingPartitionReassignment:
    """One of `OngoingTopicReassignment.partitions`."""

    partition_index: Int32 = 0
    replicas: list[Int32] = field(default_factory=list)
    adding_replicas: list[Int32] = field(default_factory=list)
    removing_replicas: list[Int32] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OngoingTopicReassignment:
    """One of `ListPartitionReassignmentsResponse.topics`."""

    name: String = ""
    partitions: list[OngoingPartitionReassignment] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsRequest:
    """List partitions that are being moved."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    timeout_ms: Int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None
    """Null for all."""


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsResponse:
    """Answer to `ListPartitionReassignmentsRequest`."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    topics: list[OngoingTopicReassignment] = field(default_factory=list)
