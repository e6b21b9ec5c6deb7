"""DeleteTopics v1-v6.

Behavior:
    * Each topic is deleted or refused on its own: UNKNOWN_TOPIC_OR_PARTITION for a name, UNKNOWN_TOPIC_ID for an id,
      INVALID_REQUEST where both or neither is given, and for a topic named twice.
Versions:
    * v6: by name or by id.
"""

from __future__ import annotations

from collections import Counter

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


@answers(DeleteTopicsRequest, DeleteTopicsResponse)
def delete_topics(
    request: DeleteTopicsRequest, context: RequestContext, broker: Broker
) -> DeleteTopicsResponse:
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    times = Counter((state.name, state.topic_id) for state in wanted)
    return DeleteTopicsResponse(
        responses=[delete(DeleteTopicState(name=name, topic_id=topic_id), count, broker)
                   for (name, topic_id), count in times.items()]
    )  # fmt: skip


def delete(state: DeleteTopicState, times: int, broker: Broker) -> DeletableTopicResult:
    """The outcome for one topic."""
    try:
        if times > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the topic is named more than once")
        topic = find(state, broker)
        broker.topics.delete(topic)
    except ApiError as error:
        return DeletableTopicResult(
            name=state.name, topic_id=state.topic_id, error_code=error.code, error_message=error.message
        )
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
