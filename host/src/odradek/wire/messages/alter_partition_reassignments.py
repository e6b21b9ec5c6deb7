"""AlterPartitionReassignments, API key 45 (KIP-455, KIP-860).

Source: AlterPartitionReassignmentsRequest.json and AlterPartitionReassignmentsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Bool, Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class ReassignablePartition:
    """One of `ReassignableTopic.partitions`."""

    partition_index: Int32 = 0
    replicas: list[Int32] | None = None
    """Null cancels the reassignment in progress."""


@dataclass(slots=True, kw_only=True)
class ReassignableTopic:
    """One of `AlterPartitionReassignmentsRequest.topics`."""

    name: String = ""
    partitions: list[ReassignablePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReassignablePartitionResponse:
    """One of `ReassignableTopicResponse.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


@dataclass(slots=True, kw_only=True)
class ReassignableTopicResponse:
    """One of `AlterPartitionReassignmentsResponse.responses`."""

    name: String = ""
    partitions: list[ReassignablePartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest:
    """Change the brokers of partitions."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(0)

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[Bool, since(1)] = True
    topics: list[ReassignableTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse:
    """Answer to `AlterPartitionReassignmentsRequest`."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Bool, since(1)] = True
    error_code: Int16 = 0
    error_message: String | None = ""
    responses: list[ReassignableTopicResponse] = field(default_factory=list)
