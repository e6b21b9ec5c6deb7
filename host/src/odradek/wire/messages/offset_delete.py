"""OffsetDelete, API key 47 (KIP-496).

Source: OffsetDeleteRequest.json and OffsetDeleteResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import NEVER, Int16, Int32, Message, String, Struct, only


class OffsetDeleteRequestPartition(Struct):
    """One of `OffsetDeleteRequestTopic.partitions`."""

    partition_index: Int32 = 0


class OffsetDeleteRequestTopic(Struct):
    """One of `OffsetDeleteRequest.topics`."""

    name: String = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list)


class OffsetDeleteResponsePartition(Struct):
    """One of `OffsetDeleteResponseTopic.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetDeleteResponseTopic(Struct):
    """One of `OffsetDeleteResponse.topics`."""

    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = field(default_factory=list)


class OffsetDeleteRequest(Message, api_key=47, versions=only(0), flexible=NEVER):
    """Delete committed offsets of a group."""

    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list)


class OffsetDeleteResponse(Message, answers=OffsetDeleteRequest):
    """Answer to `OffsetDeleteRequest`."""

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list)
