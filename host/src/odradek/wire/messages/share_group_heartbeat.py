"""ShareGroupHeartbeat, API key 76 (KIP-932).

Source: ShareGroupHeartbeatRequest.json and ShareGroupHeartbeatResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from odradek.wire.messages.consumer_group_heartbeat import Assignment
from odradek.wire.types import Int16, Int32, Message, String, between, since


class ShareGroupHeartbeatRequest(Message, api_key=76, versions=between(1, 1), flexible=since(0)):
    """Join, stay in and leave a share group."""

    group_id: String = ""
    member_id: String = ""
    """The client makes it."""
    member_epoch: Int32 = 0
    """0 joins, -1 leaves."""
    rack_id: String | None = None
    """Null if unchanged."""
    subscribed_topic_names: list[String] | None = None
    """Null if unchanged."""


class ShareGroupHeartbeatResponse(Message, answers=ShareGroupHeartbeatRequest):
    """Answer to `ShareGroupHeartbeatRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
    """Null if unchanged."""
