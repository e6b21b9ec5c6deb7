"""OffsetFetch v1-v10: groups of both protocols, and consumers that are in none.

Behavior:
    * A partition without a committed offset has -1 and no error; so have all partitions of an unknown group.
    * Topics that the client may not see come last; a request for all topics leaves them out.
    * A repeated topic or group is answered once; the first mention of a group counts.
    * With RequireStable a partition that an open transaction commits is UNSTABLE_OFFSET_COMMIT.
Versions:
    * v2: null topics ask for all. v5: leader epochs. v7: RequireStable. v8: several groups. v9: the member's
      id and epoch are checked (STALE_MEMBER_EPOCH). v10: topics by id.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from functools import partial

from odradek.broker.authorization import Rights, refusal
from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.group.committed_offset import CommittedOffset
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

TOP_ERROR_VERSION, SEVERAL_GROUPS_VERSION, TOPIC_ID_VERSION = 2, 8, 10

AT_A_TIME = 500
"""The most offsets of a group that are encoded in one step: half a millisecond of work."""


def refuse(request: OffsetFetchRequest, code: ErrorCode, _message: str | None) -> OffsetFetchResponse:
    """The same error everywhere: at the top, for every group, and for every partition of v1."""
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, error_code=code)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    groups = [OffsetFetchResponseGroup(group_id=group.group_id, error_code=code) for group in request.groups]
    return OffsetFetchResponse(error_code=code, topics=topics, groups=groups)


@answers(OffsetFetchRequest, refusal=refuse, each="groups", droppable=True)
def offset_fetch(
    request: OffsetFetchRequest, context: RequestContext, broker: Broker
) -> Generator[OffsetFetchResponseGroup | Composed | None, None, OffsetFetchResponse]:
    version = context.api_version
    rights = broker.authorization
    sees = rights.rights(context, AclOperation.DESCRIBE, ResourceType.GROUP)
    topics = rights.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    if version >= SEVERAL_GROUPS_VERSION:
        wanted = {group.group_id: group for group in reversed(request.groups)}
        for group in reversed(wanted.values()):
            if sees.allows(group.group_id):
                fetch = GroupFetch(broker, group, version, request.require_stable, topics)
                yield (yield from answered(fetch))
            else:
                yield OffsetFetchResponseGroup(
                    group_id=group.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
                )
        return OffsetFetchResponse()
    if not sees.allows(request.group_id):
        if version < TOP_ERROR_VERSION:
            raise refusal(ResourceType.GROUP)
        return OffsetFetchResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    fetch = GroupFetch(broker, only_group(request), version, request.require_stable, topics)
    only = yield from fetch.response()
    return OffsetFetchResponse(topics=[old_topic(topic) for topic in only.topics])


def only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """A request of a version with one group, in today's form."""
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def old_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    """An answer in the form of versions with one group."""
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=partition.partition_index,
                committed_offset=partition.committed_offset,
                committed_leader_epoch=partition.committed_leader_epoch,
                metadata=partition.metadata,
                error_code=partition.error_code,
            )
            for partition in topic.partitions
        ],
    )


def answered(fetch: GroupFetch) -> Generator[None, None, OffsetFetchResponseGroup | Composed]:
    """One group's answer, or its error."""
    try:
        if fetch.group.topics is None:
            return (yield from fetch.every_topic())
        return (yield from fetch.response())
    except ApiError as error:
        return OffsetFetchResponseGroup(group_id=fetch.group.group_id, error_code=error.code)


@dataclass(slots=True)
class GroupFetch:
    """One group's part of a request."""

    broker: Broker
    group: OffsetFetchRequestGroup
    version: int
    require_stable: bool
    rights: Rights
    """The topics that the client may see."""

    def response(self) -> Generator[None, None, OffsetFetchResponseGroup]:
        """The requested offsets, in steps.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH.
        """
        self.check()
        topics = self.group.topics
        wanted = each_once(topics) if topics is not None else (yield from self.everything())
        response = OffsetFetchResponseGroup(group_id=self.group.group_id)
        refused = []
        for topic in wanted:
            code = self.refusal(topic)
            if code is ErrorCode.NONE:
                response.topics.append((yield from self.topic(topic)))
            else:
                refused.append((topic, code))
                yield
        for topic, code in refused:
            response.topics.append((yield from self.refused(topic, code)))
        return response

    def refusal(self, topic: OffsetFetchRequestTopics) -> ErrorCode:
        """The error of a topic with an unknown id, or that the client may not see; NONE for any other."""
        name = topic.name
        if self.version >= TOPIC_ID_VERSION:
            known = self.broker.groups.topics.topic_name(topic.topic_id)
            if known is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            name = known
        return ErrorCode.NONE if self.rights.allows(name) else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def refused(
        self, topic: OffsetFetchRequestTopics, code: ErrorCode
    ) -> Generator[None, None, OffsetFetchResponseTopics]:
        """The error of one topic; a step for each partition."""
        answered = OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id)
        for index in topic.partition_indexes:
            answered.partitions.append(without_offset(index, code))
            yield
        return answered

    def check(self) -> None:
        """Check that the client may read the offsets of the group.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH.
        """
        group = self.broker.groups.groups.get(self.group.group_id)
        if group is not None:
            group.validate_offset_fetch(self.group.member_id, self.group.member_epoch)

    def every_topic(self) -> Generator[None, None, OffsetFetchResponseGroup | Composed]:
        """All offsets of the group, which may be many.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH.
        """
        self.check()
        topics = yield from self.everything()
        response = OffsetFetchResponseGroup(group_id=self.group.group_id)
        parts = [partial(self.whole_topic, topic) for topic in topics]
        if sum(len(topic.partition_indexes) for topic in topics) > AT_A_TIME:
            return Composed(response, "topics", parts)
        return composed(response, "topics", parts)

    def whole_topic(self, topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
        """The offsets of one topic, in one step."""
        return result_of(self.topic(topic))

    def everything(self) -> Generator[None, None, Iterable[OffsetFetchRequestTopics]]:
        """All partitions with an offset; a step for each."""
        topics: dict[bytes, OffsetFetchRequestTopics] = {}
        for topic_id, index in list(self.broker.groups.offsets.of_group(self.group.group_id)):
            yield
            name = self.broker.groups.topics.topic_name(topic_id)
            if name is not None and self.rights.allows(name):
                topic = topics.setdefault(topic_id, OffsetFetchRequestTopics(name=name, topic_id=topic_id))
                topic.partition_indexes.append(index)
        return topics.values()

    def topic(self, topic: OffsetFetchRequestTopics) -> Generator[None, None, OffsetFetchResponseTopics]:
        """The offsets of one topic; a step for each partition."""
        by_id = self.version >= TOPIC_ID_VERSION
        topic_id = topic.topic_id if by_id else self.broker.groups.topics.topic_id(topic.name)
        answered = OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id)
        for index in topic.partition_indexes:
            answered.partitions.append(
                without_offset(index, ErrorCode.NONE) if topic_id is None else self.partition(topic_id, index)
            )
            yield
        return answered

    def partition(self, topic_id: bytes, index: int) -> OffsetFetchResponsePartitions:
        offsets = self.broker.groups.offsets
        if self.require_stable and offsets.has_pending(self.group.group_id, (topic_id, index)):
            return without_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        committed = offsets.offset(self.group.group_id, (topic_id, index))
        return without_offset(index, ErrorCode.NONE) if committed is None else with_offset(index, committed)


def each_once(topics: Iterable[OffsetFetchRequestTopics]) -> Iterable[OffsetFetchRequestTopics]:
    """Every partition once: otherwise an answer could be a thousand times as long as its request."""
    indexes: dict[tuple[str, bytes], dict[int, None]] = {}
    for topic in topics:
        known = indexes.setdefault((topic.name, topic.topic_id), {})
        known.update(dict.fromkeys(topic.partition_indexes))
    for (name, topic_id), known in indexes.items():
        yield OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(known))


def with_offset(index: int, committed: CommittedOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def without_offset(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=code)
