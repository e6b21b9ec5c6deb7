"""AlterPartitionReassignments, API key 45 (KIP-455, KIP-860).

Source: AlterPartitionReassignmentsRequest.json and AlterPartitionReassignmentsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Bool, Int16, Int32, Message, String, Struct, between, since


class ReassignablePartition(Struct):
    """One of `ReassignableTopic.partitions`."""

    partition_index: Int32 = 0
    replicas: list[Int32] | None = None
    """Null cancels the reassignment in progress."""


class ReassignableTopic(Struct):
    """One of `AlterPartitionReassignmentsRequest.topics`."""

    name: String = ""
    partitions: list[ReassignablePartition] = field(default_factory=list)


class ReassignablePartitionResponse(Struct):
    """One of `ReassignableTopicResponse.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class ReassignableTopicResponse(Struct):
    """One of `AlterPartitionReassignmentsResponse.responses`."""

    name: String = ""
    partitions: list[ReassignablePartitionResponse] = field(default_factory=list)


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions=between(0, 1), flexible=since(0)):
    """Change the brokers of partitions."""

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[Bool, since(1)] = True
    topics: list[ReassignableTopic] = field(default_factory=list)


class AlterPartitionReassignmentsResponse(Message, answers=AlterPartitionReassignmentsRequest):
    """Answer to `AlterPartitionReassignmentsRequest`."""

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Bool, since(1)] = True
    error_code: Int16 = 0
    error_message: String | None = ""
    responses: list[ReassignableTopicResponse] = field(default_factory=list)
