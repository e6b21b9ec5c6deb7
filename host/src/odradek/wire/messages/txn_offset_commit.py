"""TxnOffsetCommit, API key 28 (KIP-98, KIP-1319).

Source: TxnOffsetCommitRequest.json and TxnOffsetCommitResponse.json, Kafka 4.4.
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


class TxnOffsetCommitRequestPartition(Struct):
    """One of `TxnOffsetCommitRequestTopic.partitions`."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(2)] = -1
    committed_metadata: String | None = ""


class TxnOffsetCommitRequestTopic(Struct):
    """One of `TxnOffsetCommitRequest.topics`."""

    name: Annotated[String, between(0, 5)] = ""
    topic_id: Annotated[Uuid, since(6)] = NIL_UUID
    partitions: list[TxnOffsetCommitRequestPartition] = field(default_factory=list)


class TxnOffsetCommitResponsePartition(Struct):
    """One of `TxnOffsetCommitResponseTopic.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Struct):
    """One of `TxnOffsetCommitResponse.topics`."""

    name: Annotated[String, between(0, 5)] = ""
    topic_id: Annotated[Uuid, since(6)] = NIL_UUID
    partitions: list[TxnOffsetCommitResponsePartition] = field(default_factory=list)


class TxnOffsetCommitRequest(Message, api_key=28, versions=between(0, 6), flexible=since(3)):
    """Store the offsets of a group as part of a transaction."""

    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id_or_member_epoch: Annotated[Int32, since(3)] = -1
    member_id: Annotated[String, since(3)] = ""
    group_instance_id: Annotated[String | None, since(3)] = None
    topics: list[TxnOffsetCommitRequestTopic] = field(default_factory=list)


class TxnOffsetCommitResponse(Message, answers=TxnOffsetCommitRequest):
    """Answer to `TxnOffsetCommitRequest`."""

    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = field(default_factory=list)
