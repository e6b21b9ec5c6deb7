"""SyncGroup, API key 14.

Source: SyncGroupRequest.json and SyncGroupResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Bytes, Int16, Int32, Message, String, Struct, between, since


class SyncGroupRequestAssignment(Struct):
    """One of `SyncGroupRequest.assignments`."""

    member_id: String = ""
    assignment: Bytes = b""


class SyncGroupRequest(Message, api_key=14, versions=between(0, 5), flexible=since(4)):
    """Submit and await the assignments of a generation."""

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(3)] = None
    protocol_type: Annotated[String | None, since(5)] = None
    protocol_name: Annotated[String | None, since(5)] = None
    assignments: list[SyncGroupRequestAssignment] = field(default_factory=list)


class SyncGroupResponse(Message, answers=SyncGroupRequest):
    """Answer to `SyncGroupRequest`."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[String | None, since(5)] = None
    protocol_name: Annotated[String | None, since(5)] = None
    assignment: Bytes = b""
