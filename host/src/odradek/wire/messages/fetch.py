"""Fetch, API key 1 (KIP-227 for sessions).

Source: FetchRequest.json and FetchResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    NIL_UUID,
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
    tag,
)


class ReplicaState(Struct):
    """Value of `FetchRequest.replica_state`."""

    replica_id: Int32 = -1
    """Broker id of a follower, -1 for a consumer."""
    replica_epoch: Int64 = -1


class FetchPartition(Struct):
    """One of `FetchTopic.partitions`."""

    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(9)] = -1
    """The leader epoch that the client knows; -1 if it knows none."""
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    """-1 if the client cannot tell."""
    log_start_offset: Annotated[Int64, since(5)] = -1
    """A follower's, -1 from a consumer."""
    partition_max_bytes: Int32 = 0
    """Soft limit, as `FetchRequest.max_bytes`."""
    replica_directory_id: Annotated[Uuid, tag(0, since(17))] = NIL_UUID
    high_watermark: Annotated[Int64, tag(1, since(18))] = 0x7FFF_FFFF_FFFF_FFFF
    """The high watermark that a follower knows."""


class FetchTopic(Struct):
    """One of `FetchRequest.topics`."""

    topic: Annotated[String, between(4, 12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NIL_UUID
    partitions: list[FetchPartition] = field(default_factory=list)


class ForgottenTopic(Struct):
    """One of `FetchRequest.forgotten_topics_data`."""

    topic: Annotated[String, between(7, 12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NIL_UUID
    partitions: list[Int32] = field(default_factory=list)


class EpochEndOffset(Struct):
    """Value of `PartitionData.diverging_epoch`."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Struct):
    """Value of `PartitionData.current_leader` and `PartitionProduceResponse.current_leader`."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Struct):
    """Value of `PartitionData.snapshot_id`."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct):
    """One of `PartitionData.aborted_transactions`."""

    producer_id: Int64 = 0
    first_offset: Int64 = 0


class PartitionData(Struct):
    """One of `FetchableTopicResponse.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    """Everything before it belongs to a decided transaction or to none; -1 where unknown."""
    log_start_offset: Annotated[Int64, since(5)] = -1
    """-1 if unknown."""
    diverging_epoch: Annotated[EpochEndOffset, tag(0, since(12))] = field(default_factory=EpochEndOffset)
    """The epoch and offset where the replica's log diverges from the leader's."""
    current_leader: Annotated[LeaderIdAndEpoch, tag(1, since(12))] = field(default_factory=LeaderIdAndEpoch)
    """The leader to ask instead, on NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH."""
    snapshot_id: Annotated[SnapshotId, tag(2, since(12))] = field(default_factory=SnapshotId)
    aborted_transactions: list[AbortedTransaction] | None = field(default_factory=list)
    """Null unless committed records were asked for."""
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    """Broker to read from instead, -1 for this one."""
    records: SentRecords | None = b""
    """Consecutive record batches; the last may be partial."""


class FetchableTopicResponse(Struct):
    """One of `FetchResponse.responses`."""

    topic: Annotated[String, between(4, 12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NIL_UUID
    partitions: list[PartitionData] = field(default_factory=list)


class NodeEndpoint(Struct):
    """One of `FetchResponse.node_endpoints` and `ProduceResponse.node_endpoints`."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


class FetchRequest(Message, api_key=1, versions=between(4, 18), flexible=since(12)):
    """Read record batches; wait for more if there are too few."""

    cluster_id: Annotated[String | None, tag(0, since(12))] = None
    """Sent by followers only, in KRaft."""
    replica_id: Annotated[Int32, between(4, 14)] = -1
    """Broker id of a follower, -1 for a consumer."""
    replica_state: Annotated[ReplicaState, tag(1, since(15))] = field(default_factory=ReplicaState)
    max_wait_ms: Int32 = 0
    """How long to wait for ``min_bytes``."""
    min_bytes: Int32 = 0
    max_bytes: Int32 = 0x7FFF_FFFF
    """Soft limit of the whole response: the first batch is sent whatever its size."""
    isolation_level: Int8 = 0
    """0 reads everything, 1 committed transactions only."""
    session_id: Annotated[Int32, since(7)] = 0
    """0 without a session."""
    session_epoch: Annotated[Int32, since(7)] = -1
    """-1 closes the session or works without one, 0 opens one."""
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = field(default_factory=list)
    """Partitions to take out of the session."""
    rack_id: Annotated[String, since(11)] = ""
    """The rack of the consumer, to find a replica near it."""


class FetchResponse(Message, answers=FetchRequest):
    """Answer to `FetchRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(7)] = 0
    """The error of the session; partitions have their own."""
    session_id: Annotated[Int32, since(7)] = 0
    """0 if none was opened."""
    responses: list[FetchableTopicResponse] = field(default_factory=list)
    node_endpoints: Annotated[list[NodeEndpoint], tag(0, since(16))] = field(default_factory=list)
    """Addresses of the leaders named in ``current_leader``."""
