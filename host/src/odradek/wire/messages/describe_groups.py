"""DescribeGroups, API key 15.

Source: DescribeGroupsRequest.json and DescribeGroupsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Bool, Bytes, Int16, Int32, Message, String, Struct, between, since


class DescribedGroupMember(Struct):
    """One of `DescribedGroup.members`."""

    member_id: String = ""
    group_instance_id: Annotated[String | None, since(4)] = None
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


class DescribedGroup(Struct):
    """One of `DescribeGroupsResponse.groups`."""

    error_code: Int16 = 0
    error_message: Annotated[String | None, since(6)] = None
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: list[DescribedGroupMember] = field(default_factory=list)
    authorized_operations: Annotated[Int32, since(3)] = -0x8000_0000


class DescribeGroupsRequest(Message, api_key=15, versions=between(0, 6), flexible=since(5)):
    """Describe groups of the classic protocol."""

    groups: list[String] = field(default_factory=list)
    include_authorized_operations: Annotated[Bool, since(3)] = False


class DescribeGroupsResponse(Message, answers=DescribeGroupsRequest):
    """Answer to `DescribeGroupsRequest`."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    groups: list[DescribedGroup] = field(default_factory=list)
