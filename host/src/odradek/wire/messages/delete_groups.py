"""DeleteGroups, API key 42 (KIP-229, KIP-1331).

Source: DeleteGroupsRequest.json and DeleteGroupsResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class DeletableGroupResult:
    """One of `DeleteGroupsResponse.results`."""

    group_id: String = ""
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(3)] = None


@dataclass(slots=True, kw_only=True)
class DeleteGroupsRequest:
    """Delete groups without members."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[Versions] = between(0, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    groups_names: list[String] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteGroupsResponse:
    """Answer to `DeleteGroupsRequest`."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[Versions] = between(0, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = field(default_factory=list)
