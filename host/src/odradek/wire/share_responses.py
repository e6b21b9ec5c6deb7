"""Responses of share groups, API keys 78 and 79 (KIP-932). A gateway passes them, the host has none.

Source: ShareFetchResponse.json and ShareAcknowledgeResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.messages.fetch import LeaderIdAndEpoch, NodeEndpoint
from odradek.wire.types import (
    NIL_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Struct,
    Uuid,
    between,
    since,
)


class AcquiredRecords(Struct):
    """One of `SharePartition.acquired_records`."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_count: Int16 = 0


class SharePartition(Struct):
    """One of `ShareTopic.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acknowledge_error_code: Int16 = 0
    acknowledge_error_message: String | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    records: Records | None = b""
    acquired_records: list[AcquiredRecords] = field(default_factory=list)


class ShareTopic(Struct):
    """One of `ShareFetchResponse.responses`."""

    topic_id: Uuid = NIL_UUID
    partitions: list[SharePartition] = field(default_factory=list)


class ShareFetchResponse(Message, api_key=78, versions=between(0, 2), flexible=since(0)):
    """Answer to ShareFetch."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, since(1)] = 0
    responses: list[ShareTopic] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


class AcknowledgedPartition(Struct):
    """One of `AcknowledgedTopic.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)


class AcknowledgedTopic(Struct):
    """One of `ShareAcknowledgeResponse.responses`."""

    topic_id: Uuid = NIL_UUID
    partitions: list[AcknowledgedPartition] = field(default_factory=list)


class ShareAcknowledgeResponse(Message, api_key=79, versions=between(0, 2), flexible=since(0)):
    """Answer to ShareAcknowledge."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, since(2)] = 0
    responses: list[AcknowledgedTopic] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
