"""ListPartitionReassignments, API key 46 (KIP-455).

Source: ListPartitionReassignmentsRequest.json and ListPartitionReassignmentsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Int16, Int32, Message, String, Struct, only, since


class ListPartitionReassignmentsTopics(Struct):
    """One of `ListPartitionReassignmentsRequest.topics`."""

    name: String = ""
    partition_indexes: list[Int32] = field(default_factory=list)


class OngoingPartitionReassignment(Struct):
    """One of `OngoingTopicReassignment.partitions`."""

    partition_index: Int32 = 0
    replicas: list[Int32] = field(default_factory=list)
    adding_replicas: list[Int32] = field(default_factory=list)
    removing_replicas: list[Int32] = field(default_factory=list)


class OngoingTopicReassignment(Struct):
    """One of `ListPartitionReassignmentsResponse.topics`."""

    name: String = ""
    partitions: list[OngoingPartitionReassignment] = field(default_factory=list)


class ListPartitionReassignmentsRequest(Message, api_key=46, versions=only(0), flexible=since(0)):
    """List partitions that are being moved."""

    timeout_ms: Int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None
    """Null for all."""


class ListPartitionReassignmentsResponse(Message, answers=ListPartitionReassignmentsRequest):
    """Answer to `ListPartitionReassignmentsRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    topics: list[OngoingTopicReassignment] = field(default_factory=list)
