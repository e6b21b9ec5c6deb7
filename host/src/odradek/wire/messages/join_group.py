"""JoinGroup, API key 11.

Source: JoinGroupRequest.json and JoinGroupResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    Bool,
    Bytes,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    between,
    nullable,
    since,
)


class JoinGroupRequestProtocol(Struct):
    """One of `JoinGroupRequest.protocols`."""

    name: String = ""
    metadata: Bytes = b""


class JoinGroupResponseMember(Struct):
    """One of `JoinGroupResponse.members`."""

    member_id: String = ""
    group_instance_id: Annotated[String | None, since(5)] = None
    metadata: Bytes = b""


class JoinGroupRequest(Message, api_key=11, versions=between(0, 9), flexible=since(6)):
    """Join a group of the classic protocol, or take part in its rebalance."""

    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, since(1)] = -1
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(5)] = None
    protocol_type: String = ""
    protocols: list[JoinGroupRequestProtocol] = field(default_factory=list)
    reason: Annotated[String | None, since(8)] = None


class JoinGroupResponse(Message, answers=JoinGroupRequest):
    """Answer to `JoinGroupRequest`."""

    throttle_time_ms: Annotated[Int32, since(2)] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, since(7)] = None
    protocol_name: Annotated[String | None, nullable(since(7))] = ""
    leader: String = ""
    skip_assignment: Annotated[Bool, since(9)] = False
    member_id: String = ""
    members: list[JoinGroupResponseMember] = field(default_factory=list)
