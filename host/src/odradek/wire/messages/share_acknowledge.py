"""ShareAcknowledge, API key 79 (KIP-932, KIP-1222 for renewals).

Source: ShareAcknowledgeRequest.json and ShareAcknowledgeResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.messages.fetch import NodeEndpoint
from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Int8,
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


class AcknowledgementBatch(Struct):
    """One of `AcknowledgePartition.acknowledgement_batches`, and of the partitions of ShareFetch."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    acknowledge_types: list[Int8] = field(default_factory=list)
    """One for each offset, or one for all: 0 gap, 1 accept, 2 release, 3 reject, 4 renew."""


class AcknowledgePartition(Struct):
    """One of `AcknowledgeTopic.partitions`."""

    partition_index: Int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)


class AcknowledgeTopic(Struct):
    """One of `ShareAcknowledgeRequest.topics`."""

    topic_id: Uuid = NIL_UUID
    partitions: list[AcknowledgePartition] = field(default_factory=list)


class LeaderIdAndEpoch(Struct):
    """Value of `AcknowledgedPartition.current_leader`, and of that of the partitions of ShareFetch."""

    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


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


class ShareAcknowledgeRequest(Message, api_key=79, versions=between(1, 2), flexible=since(0)):
    """Acknowledge records that were acquired."""

    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    """-1 closes the session; else it counts the requests of the session."""
    is_renew_ack: Annotated[Bool, since(2)] = False
    """True if acknowledgements may renew locks."""
    topics: list[AcknowledgeTopic] = field(default_factory=list)


class ShareAcknowledgeResponse(Message, answers=ShareAcknowledgeRequest):
    """Answer to `ShareAcknowledgeRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, since(2)] = 0
    responses: list[AcknowledgedTopic] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
    """Addresses of the leaders named in ``current_leader``."""
