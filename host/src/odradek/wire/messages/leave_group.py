"""LeaveGroup, API key 13.

Source: LeaveGroupRequest.json and LeaveGroupResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int16, Int32, Message, String, Struct, between, since


class MemberIdentity(Struct):
    """One of `LeaveGroupRequest.members`."""

    member_id: String = ""
    group_instance_id: String | None = None
    reason: Annotated[String | None, since(5)] = None


class MemberResponse(Struct):
    """One of `LeaveGroupResponse.members`."""

    member_id: String = ""
    group_instance_id: String | None = ""
    error_code: Int16 = 0


class LeaveGroupRequest(Message, api_key=13, versions=between(0, 5), flexible=since(4)):
    """Leave a group, or remove members from it."""

    group_id: String = ""
    member_id: Annotated[String, between(0, 2)] = ""
    members: Annotated[list[MemberIdentity], since(3)] = field(default_factory=list)


class LeaveGroupResponse(Message, answers=LeaveGroupRequest):
    """Answer to `LeaveGroupRequest`."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    members: Annotated[list[MemberResponse], since(3)] = field(default_factory=list)
