"""CreatePartitions, API key 37 (KIP-195).

Source: CreatePartitionsRequest.json and CreatePartitionsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Bool, Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class CreatePartitionsAssignment:
    """One of `CreatePartitionsTopic.assignments`."""

    broker_ids: list[Int32] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreatePartitionsTopic:
    """One of `CreatePartitionsRequest.topics`."""

    name: String = ""
    count: Int32 = 0
    """The new total."""
    assignments: list[CreatePartitionsAssignment] | None = field(default_factory=list)
    """Replicas of the new partitions; null lets the broker choose."""


@dataclass(slots=True, kw_only=True)
class CreatePartitionsTopicResult:
    """One of `CreatePartitionsResponse.results`."""

    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


@dataclass(slots=True, kw_only=True)
class CreatePartitionsRequest:
    """Raise the number of partitions of topics."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[Versions] = between(0, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    topics: list[CreatePartitionsTopic] = field(default_factory=list)
    timeout_ms: Int32 = 0
    validate_only: Bool = False


@dataclass(slots=True, kw_only=True)
class CreatePartitionsResponse:
    """Answer to `CreatePartitionsRequest`."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[Versions] = between(0, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = field(default_factory=list)
