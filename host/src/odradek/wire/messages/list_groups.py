"""ListGroups, API key 16.

Source: ListGroupsRequest.json and ListGroupsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class ListedGroup:
    """One of `ListGroupsResponse.groups`."""

    group_id: String = ""
    protocol_type: String = ""
    group_state: Annotated[String, since(4)] = ""
    group_type: Annotated[String, since(5)] = ""


@dataclass(slots=True, kw_only=True)
class ListGroupsRequest:
    """List the groups that this broker coordinates."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[Versions] = between(0, 5)
    FLEXIBLE: ClassVar[Versions] = since(3)

    states_filter: Annotated[list[String], since(4)] = field(default_factory=list)
    types_filter: Annotated[list[String], since(5)] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ListGroupsResponse:
    """Answer to `ListGroupsRequest`."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[Versions] = between(0, 5)
    FLEXIBLE: ClassVar[Versions] = since(3)

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = field(default_factory=list)
