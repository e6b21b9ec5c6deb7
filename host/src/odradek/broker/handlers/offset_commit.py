"""OffsetCommit v2-v10: groups of both protocols, and consumers that are in none.

Behavior:
    * All valid partitions of a request are stored together, or none; those with an error are left out.
    * An unknown topic or partition is refused as such, whatever the group says about the client.
    * Offsets are stored by topic id: they are deleted with the topic.
    * A stored offset survives the end of the process. A power cut may lose the last commits.
Versions:
    * v2-v4: retention time. v5: none. v6: leader epochs. v7: static members. v9: members of the
      consumer protocol. v10: topics by id.
Differs from Kafka:
    * The first offsets of a new group beyond ``groups.max`` are POLICY_VIOLATION, and so are new offsets
      beyond ``offsets.max`` or ``offsets.metadata.max.bytes``; others of the request are stored.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from odradek.broker.broker import Broker
from odradek.broker.commit_verdict import CommitVerdict
from odradek.broker.dispatch.routes import answers
from odradek.group.committed_offset import CommittedOffset, TopicPartition
from odradek.group.group import Committer
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT64_MAX
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_ID_VERSION = 10


@answers(OffsetCommitRequest, refuses="topics", each="topics")
def offset_commit(
    request: OffsetCommitRequest, context: RequestContext, broker: Broker
) -> Generator[OffsetCommitResponseTopic | None, None, OffsetCommitResponse]:
    broker.authorization.require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    broker.check_new_group(request.group_id)
    committer = Committer(
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        api_version=context.api_version,
    )
    verdict = CommitVerdict(
        broker,
        broker.groups.offsets.room(request.group_id),
        lambda: broker.groups.committing(request.group_id, committer),
        broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC),
    )
    commit = Commit(broker, request, context.api_version >= TOPIC_ID_VERSION, verdict)
    begun = broker.steps.turns
    for topic in request.topics:
        yield from commit.topic(topic)
    if commit.offsets and broker.steps.turns != begun:
        broker.groups.committing(request.group_id, committer)  # the group may have changed in the meantime
        commit.drop_deleted_topics()
    broker.groups.commit(request.group_id, commit.offsets)
    return OffsetCommitResponse()


@dataclass(slots=True)
class Commit:
    """One request, partition by partition."""

    broker: Broker
    request: OffsetCommitRequest
    by_id: bool
    """The request names topics by id."""
    verdict: CommitVerdict
    offsets: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    """The offsets to store."""

    def topic(
        self, topic: OffsetCommitRequestTopic
    ) -> Generator[OffsetCommitResponseTopic | None, None, None]:
        """Collect the offsets that may be stored. Yields an answer for all partitions, after the last one."""
        answered = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions:
            answered.partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=self.partition(topic, partition)
                )
            )
            yield None
        yield answered

    def drop_deleted_topics(self) -> None:
        """Do not store the offsets of topics that were deleted after their partitions were checked."""
        view = self.broker.groups.topics
        gone = {topic_id for topic_id, _ in self.offsets if view.topic_name(topic_id) is None}
        if gone:
            self.offsets = {key: offset for key, offset in self.offsets.items() if key[0] not in gone}

    def partition(
        self, topic: OffsetCommitRequestTopic, partition: OffsetCommitRequestPartition
    ) -> ErrorCode:
        """Collect one offset. Returns its error code."""
        metadata = partition.committed_metadata or ""
        try:
            known = self.verdict.admit(
                topic.name, topic.topic_id, partition.partition_index, metadata, by_id=self.by_id
            )
        except ApiError as error:
            return error.code
        self.offsets[known] = self.offset(partition, metadata)
        return ErrorCode.NONE

    def offset(self, partition: OffsetCommitRequestPartition, metadata: str) -> CommittedOffset:
        """The offset to store for a partition."""
        now_ms = self.broker.clock.now_ms()
        retention_ms = self.request.retention_time_ms
        return CommittedOffset(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp_ms=now_ms,
            expire_timestamp_ms=None if retention_ms < 0 else min(now_ms + retention_ms, INT64_MAX),
        )
