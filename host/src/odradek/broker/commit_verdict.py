"""The offsets of one request: which are taken, by the coordinators and by the limits of this host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from odradek.broker.authorization import EVERYTHING, Rights, refusal
from odradek.broker.broker import Broker
from odradek.group.committed_offset import CommittedOffset, TopicPartition
from odradek.group.group import PartitionCheck
from odradek.group.offset_total import OffsetRoom
from odradek.plugin.authorizer import ResourceType
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT64_MAX
from odradek.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from odradek.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

RequestTopic = OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic
RequestPartition = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


@dataclass(slots=True)
class CommitVerdict:
    """The verdict of the coordinators about one request, which is asked for once, and the offsets to store.

    Kafka refuses unknown partitions before it asks a coordinator, and with no others it does not ask at all.
    """

    broker: Broker
    room: OffsetRoom
    """The offsets that the request may add."""
    ask: Callable[[], PartitionCheck | None]
    rights: Rights
    """The topics that the client may read."""
    by_id: bool
    """The request names topics by id."""
    retention_ms: int = -1
    """How long the offsets are kept; negative for the host's default."""
    offsets: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    """The offsets to store."""
    is_known: bool = False
    refusal: ApiError | None = None
    check: PartitionCheck | None = None

    def partition_check(self) -> PartitionCheck | None:
        """The check of each partition; None if there is none.

        Raises:
            ApiError: The request is refused.
        """
        if not self.is_known:
            self.is_known = True
            try:
                self.check = self.ask()
            except ApiError as error:
                self.refusal = error.kept()
        if self.refusal is not None:
            raise ApiError(self.refusal.code, self.refusal.message)
        return self.check

    def check_right(self, topic: RequestTopic) -> None:
        """Check that the client may read a topic. An id that no topic has is not a matter of rights.

        Raises:
            ApiError: TOPIC_AUTHORIZATION_FAILED.
        """
        name = topic.name
        if self.by_id:
            known = self.broker.topics.by_id.get(topic.topic_id)
            if known is None:
                return
            name = known.name
        if not self.rights.allows(name):
            raise refusal(ResourceType.TOPIC)

    def admit(self, topic: RequestTopic, partition: int, metadata: str) -> TopicPartition:
        """Check one offset. Returns the partition for which it is stored.

        Raises:
            ApiError: The client may not read the topic, the partition is unknown, the request is refused, or
                the offset or its metadata exceeds a limit.
        """
        if self.rights is not EVERYTHING:
            self.check_right(topic)
        known = self.broker.topics.committed(topic.name, topic.topic_id, partition, by_id=self.by_id)
        check = self.partition_check()
        if len(metadata) > self.broker.groups.config.offset_metadata_max_bytes:
            raise ApiError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        if check is not None:
            check(*known)
        self.room.take(known, metadata)
        return known

    def take(self, topic: RequestTopic, partition: RequestPartition) -> ErrorCode:
        """Note an offset to store, or return why it is refused."""
        metadata, now_ms = partition.committed_metadata or "", self.broker.clock.now_ms()
        try:
            known = self.admit(topic, partition.partition_index, metadata)
        except ApiError as error:
            return error.code
        self.offsets[known] = CommittedOffset(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp_ms=now_ms,
            expire_timestamp_ms=None if self.retention_ms < 0 else min(now_ms + self.retention_ms, INT64_MAX),
        )
        return ErrorCode.NONE

    def drop_deleted_topics(self) -> None:
        """Do not store the offsets of topics that were deleted after their partitions were checked."""
        topics = self.broker.topics.by_id
        self.offsets = {key: offset for key, offset in self.offsets.items() if key[0] in topics}
