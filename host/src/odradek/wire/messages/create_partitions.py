"""CreatePartitions, API key 37 (KIP-195).

Source: CreatePartitionsRequest.json and CreatePartitionsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Bool, Int16, Int32, Message, String, Struct, between, since


class CreatePartitionsAssignment(Struct):
    """One of `CreatePartitionsTopic.assignments`."""

    broker_ids: list[Int32] = field(default_factory=list)


class CreatePartitionsTopic(Struct):
    """One of `CreatePartitionsRequest.topics`."""

    name: String = ""
    count: Int32 = 0
    """The new total."""
    assignments: list[CreatePartitionsAssignment] | None = field(default_factory=list)
    """Replicas of the new partitions; null lets the broker choose."""


class CreatePartitionsTopicResult(Struct):
    """One of `CreatePartitionsResponse.results`."""

    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class CreatePartitionsRequest(Message, api_key=37, versions=between(0, 3), flexible=since(2)):
    """Raise the number of partitions of topics."""

    topics: list[CreatePartitionsTopic] = field(default_factory=list)
    timeout_ms: Int32 = 0
    validate_only: Bool = False


class CreatePartitionsResponse(Message, answers=CreatePartitionsRequest):
    """Answer to `CreatePartitionsRequest`."""

    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = field(default_factory=list)
