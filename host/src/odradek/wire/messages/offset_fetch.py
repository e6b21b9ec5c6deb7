"""OffsetFetch, API key 9.

Source: OffsetFetchRequest.json and OffsetFetchResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uuid,
    between,
    nullable,
    since,
)


class OffsetFetchRequestTopic(Struct):
    """One of `OffsetFetchRequest.topics`."""

    name: String = ""
    partition_indexes: list[Int32] = field(default_factory=list)


class OffsetFetchRequestTopics(Struct):
    """One of `OffsetFetchRequestGroup.topics`."""

    name: Annotated[String, between(8, 9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NIL_UUID
    partition_indexes: list[Int32] = field(default_factory=list)


class OffsetFetchRequestGroup(Struct):
    """One of `OffsetFetchRequest.groups`."""

    group_id: String = ""
    member_id: Annotated[String | None, since(9)] = None
    member_epoch: Annotated[Int32, since(9)] = -1
    """-1 for a group of the classic protocol."""
    topics: list[OffsetFetchRequestTopics] | None = field(default_factory=list)
    """Null for all."""


class OffsetFetchResponsePartition(Struct):
    """One of `OffsetFetchResponseTopic.partitions`."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    """-1 if there is none."""
    committed_leader_epoch: Annotated[Int32, between(5, 7)] = -1
    metadata: String | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Struct):
    """One of `OffsetFetchResponse.topics`."""

    name: String = ""
    partitions: list[OffsetFetchResponsePartition] = field(default_factory=list)


class OffsetFetchResponsePartitions(Struct):
    """One of `OffsetFetchResponseTopics.partitions`."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    """-1 if there is none."""
    committed_leader_epoch: Int32 = -1
    metadata: String | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopics(Struct):
    """One of `OffsetFetchResponseGroup.topics`."""

    name: Annotated[String, between(8, 9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NIL_UUID
    partitions: list[OffsetFetchResponsePartitions] = field(default_factory=list)


class OffsetFetchResponseGroup(Struct):
    """One of `OffsetFetchResponse.groups`."""

    group_id: String = ""
    topics: list[OffsetFetchResponseTopics] = field(default_factory=list)
    error_code: Int16 = 0


class OffsetFetchRequest(Message, api_key=9, versions=between(1, 10), flexible=since(6)):
    """Read the committed offsets of groups."""

    group_id: Annotated[String, between(1, 7)] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, between(1, 7), nullable(between(2, 7))] = field(
        default_factory=list
    )
    """Null for all."""
    groups: Annotated[list[OffsetFetchRequestGroup], since(8)] = field(default_factory=list)
    require_stable: Annotated[Bool, since(7)] = False
    """True refuses offsets that an open transaction may still change."""


class OffsetFetchResponse(Message, answers=OffsetFetchRequest):
    """Answer to `OffsetFetchRequest`."""

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], between(1, 7)] = field(default_factory=list)
    error_code: Annotated[Int16, between(2, 7)] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], since(8)] = field(default_factory=list)
