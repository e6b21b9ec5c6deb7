"""ListGroups, API key 16.

Source: ListGroupsRequest.json and ListGroupsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int16, Int32, Message, String, Struct, between, since


class ListedGroup(Struct):
    """One of `ListGroupsResponse.groups`."""

    group_id: String = ""
    protocol_type: String = ""
    group_state: Annotated[String, since(4)] = ""
    group_type: Annotated[String, since(5)] = ""


class ListGroupsRequest(Message, api_key=16, versions=between(0, 5), flexible=since(3)):
    """List the groups that this broker coordinates."""

    states_filter: Annotated[list[String], since(4)] = field(default_factory=list)
    types_filter: Annotated[list[String], since(5)] = field(default_factory=list)


class ListGroupsResponse(Message, answers=ListGroupsRequest):
    """Answer to `ListGroupsRequest`."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = field(default_factory=list)
