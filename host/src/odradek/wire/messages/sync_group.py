"""SyncGroup, API key 14.

Source: SyncGroupRequest.json and SyncGroupResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Bytes, Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class SyncGroupRequestAssignment:
    """One of `SyncGroupRequest.assignments`."""

    member_id: String = ""
    assignment: Bytes = b""


@dataclass(slots=True, kw_only=True)
class SyncGroupRequest:
    """Submit and await the assignments of a generation."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[Versions] = between(0, 5)
    FLEXIBLE: ClassVar[Versions] = since(4)

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(3)] = None
    protocol_type: Annotated[String | None, since(5)] = None
    protocol_name: Annotated[String | None, since(5)] = None
    assignments: list[SyncGroupRequestAssignment] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class SyncGroupResponse:
    """Answer to `SyncGroupRequest`."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[Versions] = between(0, 5)
    FLEXIBLE: ClassVar[Versions] = since(4)

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[String | None, since(5)] = None
    protocol_name: Annotated[String | None, since(5)] = None
    assignment: Bytes = b""
