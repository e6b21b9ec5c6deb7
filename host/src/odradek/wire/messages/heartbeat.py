"""Heartbeat, API key 12.

Source: HeartbeatRequest.json and HeartbeatResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from typing import Annotated

from odradek.wire.types import Int16, Int32, Message, String, between, since


class HeartbeatRequest(Message, api_key=12, versions=between(0, 4), flexible=since(4)):
    """Stay a member of a group."""

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(3)] = None


class HeartbeatResponse(Message, answers=HeartbeatRequest):
    """Answer to `HeartbeatRequest`."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
