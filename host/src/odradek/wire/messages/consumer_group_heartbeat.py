"""ConsumerGroupHeartbeat, API key 68 (KIP-848).

Source: ConsumerGroupHeartbeatRequest.json and ConsumerGroupHeartbeatResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import NIL_UUID, Int16, Int32, Message, String, Struct, Uuid, between, since


class TopicPartitions(Struct):
    """One of `ConsumerGroupHeartbeatRequest.topic_partitions` and `Assignment.topic_partitions`."""

    topic_id: Uuid = NIL_UUID
    partitions: list[Int32] = field(default_factory=list)


class Assignment(Struct):
    """Value of `ConsumerGroupHeartbeatResponse.assignment`."""

    topic_partitions: list[TopicPartitions] = field(default_factory=list)


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions=between(0, 1), flexible=since(0)):
    """Join, stay in and leave a group of the consumer protocol."""

    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    """0 joins, -1 leaves, -2 leaves as a static member that will return."""
    instance_id: String | None = None
    """Null for a dynamic member."""
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    """-1 if unchanged."""
    subscribed_topic_names: list[String] | None = None
    """Null if unchanged."""
    subscribed_topic_regex: Annotated[String | None, since(1)] = None
    """Null if unchanged."""
    server_assignor: String | None = None
    """Null if unchanged, or if the broker chooses."""
    topic_partitions: list[TopicPartitions] | None = None
    """The partitions that the member owns; null if unchanged."""


class ConsumerGroupHeartbeatResponse(Message, answers=ConsumerGroupHeartbeatRequest):
    """Answer to `ConsumerGroupHeartbeatRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
    """Null if unchanged."""
