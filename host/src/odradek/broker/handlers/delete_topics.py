"""DeleteTopics v1-v6.

Behavior:
    * Each topic is deleted or refused on its own: UNKNOWN_TOPIC_OR_PARTITION for a name, UNKNOWN_TOPIC_ID
      for an id, INVALID_REQUEST where both or neither is given, and for a topic named twice, which then
      stays; by its name and by its id is twice.
Versions:
    * v6: by name or by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from odradek.broker.broker import Broker
from odradek.broker.routing import answers
from odradek.broker.topics import Topic
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from odradek.wire.types import NIL_UUID


def mentioned(request: DeleteTopicsRequest) -> Iterable[DeleteTopicState]:
    """What the request names, in either form."""
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def refuse(request: DeleteTopicsRequest, code: ErrorCode, message: str | None) -> DeleteTopicsResponse:
    """The same error for every topic: there is no room for one at the top."""
    return DeleteTopicsResponse(responses=[refused(state, code, message) for state in mentioned(request)])


def refused(state: DeleteTopicState, code: ErrorCode, message: str | None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name, topic_id=state.topic_id, error_code=code, error_message=message
    )


@answers(DeleteTopicsRequest, DeleteTopicsResponse, refusal=refuse)
def delete_topics(
    request: DeleteTopicsRequest, context: RequestContext, broker: Broker
) -> DeleteTopicsResponse:
    mentions = list(mentioned(request))
    times = Counter(topic.id for topic in known(mentions, broker))
    wanted = {(state.name, state.topic_id): state for state in mentions}
    return DeleteTopicsResponse(responses=[delete(state, times, broker) for state in wanted.values()])


def known(states: Iterable[DeleteTopicState], broker: Broker) -> Iterator[Topic]:
    """The topics that are meant, as often as they are."""
    for state in states:
        with suppress(ApiError):
            yield find(state, broker)


def delete(state: DeleteTopicState, times: Counter[bytes], broker: Broker) -> DeletableTopicResult:
    """The outcome for one topic."""
    try:
        topic = find(state, broker)
        if times[topic.id] > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the topic is named more than once")
        broker.topics.delete(topic)
    except ApiError as error:
        return refused(state, error.code, error.message)
    return DeletableTopicResult(name=topic.name, topic_id=topic.id)


def find(state: DeleteTopicState, broker: Broker) -> Topic:
    """The topic that is meant."""
    if (state.name is None) == (state.topic_id == NIL_UUID):
        raise ApiError(ErrorCode.INVALID_REQUEST, "either a topic name or a topic id is needed")
    if state.name is not None:
        topic = broker.topics.named(state.name)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        topic = broker.topics.by_id.get(state.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    if topic is None:
        raise ApiError(unknown)
    return topic
