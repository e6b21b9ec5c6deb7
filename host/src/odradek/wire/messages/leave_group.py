"""LeaveGroup, API key 13.

Source: LeaveGroupRequest.json and LeaveGroupResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class MemberIdentity:
    """One of `LeaveGroupRequest.members`."""

    member_id: String = ""
    group_instance_id: String | None = None
    reason: Annotated[String | None, since(5)] = None


@dataclass(slots=True, kw_only=True)
class MemberResponse:
    """One of `LeaveGroupResponse.members`."""

    member_id: String = ""
    group_instance_id: String | None = ""
    error_code: Int16 = 0


@dataclass(slots=True, kw_only=True)
class LeaveGroupRequest:
    """Leave a group, or remove members from it."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[Versions] = between(0, 5)
    FLEXIBLE: ClassVar[Versions] = since(4)

    group_id: String = ""
    member_id: Annotated[String, between(0, 2)] = ""
    members: Annotated[list[MemberIdentity], since(3)] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class LeaveGroupResponse:
    """Answer to `LeaveGroupRequest`."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[Versions] = between(0, 5)
    FLEXIBLE: ClassVar[Versions] = since(4)

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    members: Annotated[list[MemberResponse], since(3)] = field(default_factory=list)
