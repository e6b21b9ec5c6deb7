"""DeleteTopics v1-v6.

Behavior:
    * Each topic is deleted or refused separately: UNKNOWN_TOPIC_OR_PARTITION for an unknown name,
      UNKNOWN_TOPIC_ID for an unknown id, INVALID_REQUEST if both or neither is given. A topic that is named
      twice, also by name and by id, is INVALID_REQUEST, stays, and is answered once.
    * A topic that the client may not see is TOPIC_AUTHORIZATION_FAILED whether it exists or not; by id, the
      answer has no name.
    * The partitions of a topic to delete are charged to the mutation quota (KIP-599). While the quota is
      exhausted a topic is THROTTLING_QUOTA_EXCEEDED, and stays.
    * Fetches that wait for one of its partitions are answered.
    * A topic is invisible once its deletion is stored; its logs are gone before the answer.
    * A topic that is not begun within TimeoutMs is REQUEST_TIMED_OUT, and stays.
Versions:
    * v5: error messages; before it the mutation quota throttles, but refuses nothing. v6: by name or by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass

from odradek.broker.authorization import Authorization, Rights, refusal
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.throttling import Mutated, charge_mutations, mutated, mutation_quota
from odradek.broker.request_timeout import RequestDeadline
from odradek.broker.topic_changes import STORED_TOGETHER
from odradek.broker.topic_refusals import mentioned, refuse_old, refused_old
from odradek.broker.topics import Topic
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.quota.controller_mutation_quota import ControllerMutationQuota
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from odradek.wire.types import NIL_UUID

STRICT_VERSION = 5
Mention = tuple[str | None, bytes]
"""Name and id, as a client gives them."""


@answers(DeleteTopicsRequest, refusal=refuse_old, charge=charge_mutations, each="responses")
def delete_topics(
    request: DeleteTopicsRequest, context: RequestContext, broker: Broker
) -> Generator[DeletableTopicResult | None, None, DeleteTopicsResponse | Mutated]:
    """Delete all topics: some with one write to the disk, then their logs one by one."""
    deadline = RequestDeadline.after(request.timeout_ms, broker.clock)
    times = Counter((state.name, state.topic_id) for state in mentioned(request))
    quota = mutation_quota(context, broker, STRICT_VERSION)
    rights = DeletionRights.of(context, broker.authorization)
    mentions = yield from answered(times, rights, broker)
    for start in range(0, len(mentions), STORED_TOGETHER):
        responses: list[DeletableTopicResult] = []
        chosen: dict[int, Topic] = {}
        for mention in mentions[start : start + STORED_TOGETHER]:
            found = choose(mention, times, deadline, quota, rights, broker)
            if isinstance(found, Topic):
                chosen[len(responses)] = found
                found = DeletableTopicResult(name=found.name, topic_id=found.id, error_message=None)
            responses.append(found)
            yield None
        failed = yield from broker.topics.deletion(list(chosen.values()))
        for place, topic in chosen.items():
            if topic.id in failed:
                error = failed[topic.id]
                responses[place] = refused_old(topic.name, topic.id, error.code, error.message)
        yield from responses
    return mutated(DeleteTopicsResponse(), quota)


@dataclass(frozen=True, slots=True)
class DeletionRights:
    """The topics that a caller may delete, and those that it may know to exist."""

    deletes: Rights
    sees: Rights

    @classmethod
    def of(cls, context: RequestContext, authorization: Authorization) -> DeletionRights:
        deletes, sees = (
            authorization.rights(context, operation, ResourceType.TOPIC, or_on_cluster=AclOperation.DELETE)
            for operation in (AclOperation.DELETE, AclOperation.DESCRIBE)
        )
        return cls(deletes, sees)


def answered(
    times: Counter[Mention], rights: DeletionRights, broker: Broker
) -> Generator[None, None, list[Mention]]:
    """The mentions that get an answer: all except ids of topics that are also named, and may be deleted."""
    by_name = set()
    for name, topic_id in times:
        if topic_id == NIL_UUID and (topic := named(name, broker)) and rights.deletes.allows(topic.name):
            by_name.add(topic.id)
        yield
    return [(name, topic_id) for name, topic_id in times if name is not None or topic_id not in by_name]


def named(name: str | None, broker: Broker) -> Topic | None:
    """The topic with this name; None if there is none."""
    return None if name is None else broker.topics.named(name)


def choose(
    mention: Mention,
    times: Counter[Mention],
    deadline: RequestDeadline,
    quota: ControllerMutationQuota,
    rights: DeletionRights,
    broker: Broker,
) -> Topic | DeletableTopicResult:
    """The topic to delete, or the refusal."""
    name, topic_id = mention
    try:
        deadline.check()
        check_mention(mention, times)
        if name is not None and not rights.sees.allows(name):
            raise refusal(ResourceType.TOPIC)
        topic = find(mention, broker)
        if name is None and rights.sees.allows(topic.name):
            name = topic.name
        if not rights.deletes.allows(topic.name):
            raise refusal(ResourceType.TOPIC)
        name, topic_id = topic.name, topic.id
        if mention[0] is not None and times[None, topic.id]:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
            )
        quota.record(len(topic.partitions))
    except ApiError as error:
        return refused_old(name, topic_id, error.code, error.message)
    return topic


def check_mention(mention: Mention, times: Counter[Mention]) -> None:
    """Check the form of a mention, in Kafka's order.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    name, topic_id = mention
    if name is None and topic_id == NIL_UUID:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if name is not None and topic_id != NIL_UUID:
        raise ApiError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if times[mention] > 1:
        what = "name" if name is not None else "id"
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")


def find(mention: Mention, broker: Broker) -> Topic:
    """The topic that is meant.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID.
    """
    name, topic_id = mention
    if name is not None:
        topic, unknown = broker.topics.named(name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        topic, unknown = broker.topics.by_id.get(topic_id), ErrorCode.UNKNOWN_TOPIC_ID
    if topic is None:
        what = "topic-partition" if name is not None else "topic ID"
        raise ApiError(unknown, f"This server does not host this {what}.")
    return topic
