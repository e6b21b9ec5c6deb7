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

from odradek.broker.broker import Broker
from odradek.broker.commit_verdict import CommitVerdict
from odradek.broker.dispatch.routes import answers
from odradek.group.group import Committer
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
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
        by_id=context.api_version >= TOPIC_ID_VERSION,
        retention_ms=request.retention_time_ms,
    )
    begun = broker.steps.turns
    for topic in request.topics:
        answered = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions:
            code = verdict.take(topic, partition)
            answered.partitions.append(
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
            yield None
        yield answered
    if verdict.offsets and broker.steps.turns != begun:
        broker.groups.committing(request.group_id, committer)  # the group may have changed in the meantime
        verdict.drop_deleted_topics()
    broker.groups.commit(request.group_id, verdict.offsets)
    return OffsetCommitResponse()
