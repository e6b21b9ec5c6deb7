"""DescribeShareGroupOffsets, API key 90 (KIP-932, KIP-1226 for the lag).

Source: DescribeShareGroupOffsetsRequest.json and DescribeShareGroupOffsetsResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    NIL_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uuid,
    between,
    since,
)


class ShareOffsetsTopic(Struct):
    """One of `ShareOffsetsGroup.topics`."""

    topic_name: String = ""
    partitions: list[Int32] = field(default_factory=list)


class ShareOffsetsGroup(Struct):
    """One of `DescribeShareGroupOffsetsRequest.groups`."""

    group_id: String = ""
    topics: list[ShareOffsetsTopic] | None = field(default_factory=list)
    """Null for all."""


class DescribedShareOffset(Struct):
    """One of `DescribedShareTopic.partitions`."""

    partition_index: Int32 = 0
    start_offset: Int64 = 0
    """-1 if nothing has been read yet."""
    leader_epoch: Int32 = 0
    lag: Annotated[Int64, since(1)] = -1
    """-1 if it is not known."""
    error_code: Int16 = 0
    error_message: String | None = None


class DescribedShareTopic(Struct):
    """One of `DescribedShareOffsets.topics`."""

    topic_name: String = ""
    topic_id: Uuid = NIL_UUID
    partitions: list[DescribedShareOffset] = field(default_factory=list)


class DescribedShareOffsets(Struct):
    """One of `DescribeShareGroupOffsetsResponse.groups`."""

    group_id: String = ""
    topics: list[DescribedShareTopic] = field(default_factory=list)
    error_code: Int16 = 0
    error_message: String | None = None


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions=between(0, 1), flexible=since(0)):
    """Read the offsets of share groups from which on records may be unread, and their lag."""

    groups: list[ShareOffsetsGroup] = field(default_factory=list)


class DescribeShareGroupOffsetsResponse(Message, answers=DescribeShareGroupOffsetsRequest):
    """Answer to `DescribeShareGroupOffsetsRequest`."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedShareOffsets] = field(default_factory=list)
