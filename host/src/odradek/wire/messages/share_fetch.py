"""ShareFetch, API key 78 (KIP-932, KIP-1206 for the acquire mode, KIP-1222 for renewals).

Source: ShareFetchRequest.json and ShareFetchResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.messages.fetch import NodeEndpoint
from odradek.wire.messages.share_acknowledge import AcknowledgementBatch, LeaderIdAndEpoch
from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    SentRecords,
    String,
    Struct,
    Uuid,
    between,
    since,
)


class FetchPartition(Struct):
    """One of `FetchTopic.partitions`."""

    partition_index: Int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)


class FetchTopic(Struct):
    """One of `ShareFetchRequest.topics`."""

    topic_id: Uuid = NIL_UUID
    partitions: list[FetchPartition] = field(default_factory=list)


class ForgottenTopic(Struct):
    """One of `ShareFetchRequest.forgotten_topics_data`."""

    topic_id: Uuid = NIL_UUID
    partitions: list[Int32] = field(default_factory=list)


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
    records: SentRecords = b""
    """Whole batches. The records outside of ``acquired_records`` are not the member's."""
    acquired_records: list[AcquiredRecords] = field(default_factory=list)


class ShareTopic(Struct):
    """One of `ShareFetchResponse.responses`."""

    topic_id: Uuid = NIL_UUID
    partitions: list[SharePartition] = field(default_factory=list)


class ShareFetchRequest(Message, api_key=78, versions=between(1, 2), flexible=since(0)):
    """Acquire records, and acknowledge those that were acquired."""

    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    """0 opens a session, -1 closes it; else it counts the requests of the session."""
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 0x7FFF_FFFF
    max_records: Int32 = 0
    """A soft limit, or a hard one by ``share_acquire_mode``."""
    batch_size: Int32 = 0
    """The most records of one of `SharePartition.acquired_records`, if producers' batches allow it."""
    share_acquire_mode: Annotated[Int8, since(2)] = 0
    """0 acquires whole batches, 1 no more than ``max_records``."""
    is_renew_ack: Annotated[Bool, since(2)] = False
    """True if acknowledgements may renew locks."""
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)
    """Partitions to take out of the session."""


class ShareFetchResponse(Message, answers=ShareFetchRequest):
    """Answer to `ShareFetchRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = 0
    responses: list[ShareTopic] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
    """Addresses of the leaders named in ``current_leader``."""
