"""Responses of share groups, API keys 78 and 79 (KIP-932). A gateway passes them, the host has none.

Source: ShareFetchResponse.json and ShareAcknowledgeResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.messages.fetch import LeaderIdAndEpoch, NodeEndpoint
from odradek.wire.types import NIL_UUID, Int16, Int32, Int64, Records, String, Uuid, Versions, between, since


@dataclass(slots=True, kw_only=True)
class AcquiredRecords:
    """One of `SharePartition.acquired_records`."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_count: Int16 = 0


@dataclass(slots=True, kw_only=True)
class SharePartition:
    """One of `ShareTopic.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acknowledge_error_code: Int16 = 0
    acknowledge_error_message: String | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    records: Records | None = b""
    acquired_records: list[AcquiredRecords] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ShareTopic:
    """One of `ShareFetchResponse.responses`."""

    topic_id: Uuid = NIL_UUID
    partitions: list[SharePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ShareFetchResponse:
    """Answer to ShareFetch."""

    API_KEY: ClassVar[int] = 78
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, since(1)] = 0
    responses: list[ShareTopic] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AcknowledgedPartition:
    """One of `AcknowledgedTopic.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)


@dataclass(slots=True, kw_only=True)
class AcknowledgedTopic:
    """One of `ShareAcknowledgeResponse.responses`."""

    topic_id: Uuid = NIL_UUID
    partitions: list[AcknowledgedPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeResponse:
    """Answer to ShareAcknowledge."""

    API_KEY: ClassVar[int] = 79
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, since(2)] = 0
    responses: list[AcknowledgedTopic] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
