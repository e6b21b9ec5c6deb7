"""Heartbeat, API key 12.

Source: HeartbeatRequest.json and HeartbeatResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from odradek.wire.types import Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class HeartbeatRequest:
    """Stay a member of a group."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[Versions] = between(0, 4)
    FLEXIBLE: ClassVar[Versions] = since(4)

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(3)] = None


@dataclass(slots=True, kw_only=True)
class HeartbeatResponse:
    """Answer to `HeartbeatRequest`."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[Versions] = between(0, 4)
    FLEXIBLE: ClassVar[Versions] = since(4)

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
