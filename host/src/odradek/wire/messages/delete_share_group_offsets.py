"""DeleteShareGroupOffsets, API key 92 (KIP-932).

Source: DeleteShareGroupOffsetsRequest.json and DeleteShareGroupOffsetsResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import NIL_UUID, Int16, Int32, Message, String, Struct, Uuid, between, since


class DeletedTopic(Struct):
    """One of `DeleteShareGroupOffsetsRequest.topics`."""

    topic_name: String = ""


class DeletedTopicResult(Struct):
    """One of `DeleteShareGroupOffsetsResponse.responses`."""

    topic_name: String = ""
    topic_id: Uuid = NIL_UUID
    error_code: Int16 = 0
    error_message: String | None = None


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions=between(0, 0), flexible=since(0)):
    """Delete the offsets that an empty share group has of topics."""

    group_id: String = ""
    topics: list[DeletedTopic] = field(default_factory=list)


class DeleteShareGroupOffsetsResponse(Message, answers=DeleteShareGroupOffsetsRequest):
    """Answer to `DeleteShareGroupOffsetsRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: list[DeletedTopicResult] = field(default_factory=list)
