"""DeleteTopics, API key 20 (KIP-4).

Source: DeleteTopicsRequest.json and DeleteTopicsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import NIL_UUID, Int16, Int32, String, Uuid, Versions, between, nullable, since


@dataclass(slots=True, kw_only=True)
class DeleteTopicState:
    """One of `DeleteTopicsRequest.topics`."""

    name: String | None = None
    """Null if the topic is named by its id."""
    topic_id: Uuid = NIL_UUID


@dataclass(slots=True, kw_only=True)
class DeletableTopicResult:
    """One of `DeleteTopicsResponse.responses`."""

    name: Annotated[String | None, nullable(since(6))] = ""
    """Null for an id that is unknown, or whose topic the client may not see."""
    topic_id: Annotated[Uuid, since(6)] = NIL_UUID
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(5)] = None


@dataclass(slots=True, kw_only=True)
class DeleteTopicsRequest:
    """Delete topics."""

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[Versions] = between(1, 6)
    FLEXIBLE: ClassVar[Versions] = since(4)

    topics: Annotated[list[DeleteTopicState], since(6)] = field(default_factory=list)
    topic_names: Annotated[list[String], between(1, 5)] = field(default_factory=list)
    timeout_ms: Int32 = 0


@dataclass(slots=True, kw_only=True)
class DeleteTopicsResponse:
    """Answer to `DeleteTopicsRequest`."""

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[Versions] = between(1, 6)
    FLEXIBLE: ClassVar[Versions] = since(4)

    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = field(default_factory=list)
