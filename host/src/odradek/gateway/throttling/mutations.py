"""How many partitions a request creates or deletes, as far as the request itself tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from odradek.gateway.whole_requests import request_body
from odradek.wire.messages.create_partitions import CreatePartitionsRequest
from odradek.wire.messages.create_topics import CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest


class MutationApi(NamedTuple):
    """An API that is charged by the controller mutation quota."""

    request: type[Any]
    strict_from: int
    """The first version whose clients know THROTTLING_QUOTA_EXCEEDED."""
    count: Callable[[Any], int]
    """The partitions of a request."""


def created(request: CreateTopicsRequest) -> int:
    """The partitions of new topics; 1 for a topic with the default number of the broker."""
    return sum(len(topic.assignments) or max(topic.num_partitions, 1) for topic in request.topics)


def deleted(request: DeleteTopicsRequest) -> int:
    """The topics: a request does not tell how many partitions they have."""
    return len(request.topics) + len(request.topic_names)


def added(request: CreatePartitionsRequest) -> int:
    """The partitions that are added at most: a request has the new total, and maybe the new assignments."""
    return sum(len(topic.assignments or ()) or max(topic.count - 1, 1) for topic in request.topics)


MUTATIONS: Final[Mapping[int, MutationApi]] = {
    CreateTopicsRequest.API_KEY: MutationApi(CreateTopicsRequest, 6, created),
    DeleteTopicsRequest.API_KEY: MutationApi(DeleteTopicsRequest, 5, deleted),
    CreatePartitionsRequest.API_KEY: MutationApi(CreatePartitionsRequest, 3, added),
}
"""By API key."""


def mutation(api_key: int, version: int, frame: bytes) -> Any | None:
    """Decode a request with its length; None if it cannot be decoded, which is for the broker to refuse."""
    return request_body(MUTATIONS[api_key].request, version, frame)
