"""DeleteTopics, API key 20 (KIP-4).

Source: DeleteTopicsRequest.json and DeleteTopicsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    NIL_UUID,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    between,
    nullable,
    since,
)


class DeleteTopicState(Struct):
    """One of `DeleteTopicsRequest.topics`."""

    name: String | None = None
    """Null if the topic is named by its id."""
    topic_id: Uuid = NIL_UUID


class DeletableTopicResult(Struct):
    """One of `DeleteTopicsResponse.responses`."""

    name: Annotated[String | None, nullable(since(6))] = ""
    """Null for an id that is unknown, or whose topic the client may not see."""
    topic_id: Annotated[Uuid, since(6)] = NIL_UUID
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(5)] = None


class DeleteTopicsRequest(Message, api_key=20, versions=between(1, 6), flexible=since(4)):
    """Delete topics."""

    topics: Annotated[list[DeleteTopicState], since(6)] = field(default_factory=list)
    topic_names: Annotated[list[String], between(1, 5)] = field(default_factory=list)
    timeout_ms: Int32 = 0


class DeleteTopicsResponse(Message, answers=DeleteTopicsRequest):
    """Answer to `DeleteTopicsRequest`."""

    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = field(default_factory=list)
