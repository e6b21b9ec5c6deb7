"""The refusals of requests that create, delete and grow topics, which a gateway gives, too.

The same error for every topic: their responses have no room for one at the top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.broker.dispatch.refusals import Refusal, refusal_of_each
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_partitions import CreatePartitionsRequest
from odradek.wire.messages.create_topics import CreateTopicsRequest
from odradek.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def mentioned(request: DeleteTopicsRequest) -> Iterable[DeleteTopicState]:
    """The topics that the request names, in either form."""
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def refused_old(
    name: str | None, topic_id: bytes, code: ErrorCode, message: str | None
) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)


def refuse_old(request: DeleteTopicsRequest, code: ErrorCode, message: str | None) -> DeleteTopicsResponse:
    results = [refused_old(state.name, state.topic_id, code, message) for state in mentioned(request)]
    return DeleteTopicsResponse(responses=results)


REFUSALS: Final[Mapping[int, Refusal]] = {
    CreateTopicsRequest.API_KEY: refusal_of_each(CreateTopicsRequest, "topics", "topics"),
    DeleteTopicsRequest.API_KEY: refuse_old,
    CreatePartitionsRequest.API_KEY: refusal_of_each(CreatePartitionsRequest, "topics", "results"),
}
"""By API key."""
