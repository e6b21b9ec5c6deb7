"""ConsumerGroupDescribe, API key 69 (KIP-848).

Source: ConsumerGroupDescribeRequest.json and ConsumerGroupDescribeResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    between,
    since,
)


class TopicPartitions(Struct):
    """One of `Assignment.topic_partitions`."""

    topic_id: Uuid = NIL_UUID
    topic_name: String = ""
    partitions: list[Int32] = field(default_factory=list)


class Assignment(Struct):
    """One of `Member.assignment` and `Member.target_assignment`."""

    topic_partitions: list[TopicPartitions] = field(default_factory=list)


class Member(Struct):
    """One of `DescribedGroup.members`."""

    member_id: String = ""
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = field(default_factory=list)
    subscribed_topic_regex: String | None = None
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    member_type: Annotated[Int8, since(1)] = -1


class DescribedGroup(Struct):
    """One of `ConsumerGroupDescribeResponse.groups`."""

    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[Member] = field(default_factory=list)
    authorized_operations: Int32 = -0x8000_0000


class ConsumerGroupDescribeRequest(Message, api_key=69, versions=between(0, 1), flexible=since(0)):
    """Describe groups of the consumer protocol."""

    group_ids: list[String] = field(default_factory=list)
    include_authorized_operations: Bool = False


class ConsumerGroupDescribeResponse(Message, answers=ConsumerGroupDescribeRequest):
    """Answer to `ConsumerGroupDescribeRequest`."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = field(default_factory=list)
