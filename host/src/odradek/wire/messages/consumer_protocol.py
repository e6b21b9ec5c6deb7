"""The bytes that consumers of the classic protocol put into JoinGroup and SyncGroup.

Source: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json, Kafka 4.3.
Both are preceded by an int16 with the version (ConsumerProtocol.java), which is not declared here.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import NEVER, Bytes, Int32, Message, String, Struct, between, since


class TopicPartition(Struct):
    """Partitions of one topic."""

    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


class ConsumerProtocolSubscription(Message, versions=between(0, 3), flexible=NEVER):
    """The topics that a member wants to read: `JoinGroupRequestProtocol.metadata`."""

    topics: list[String] = field(default_factory=list)
    user_data: Bytes | None = None
    owned_partitions: Annotated[list[TopicPartition], since(1)] = field(default_factory=list)
    generation_id: Annotated[Int32, since(2)] = -1
    rack_id: Annotated[String | None, since(3)] = None


class ConsumerProtocolAssignment(Message, versions=between(0, 3), flexible=NEVER):
    """The partitions assigned to a member: `SyncGroupResponse.assignment`."""

    assigned_partitions: list[TopicPartition] = field(default_factory=list)
    user_data: Bytes | None = None
