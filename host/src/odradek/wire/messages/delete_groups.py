"""DeleteGroups, API key 42 (KIP-229).

Source: DeleteGroupsRequest.json and DeleteGroupsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class DeletableGroupResult:
    """One of `DeleteGroupsResponse.results`."""

    group_id: String = ""
    error_code: Int16 = 0


@dataclass(slots=True, kw_only=True)
class DeleteGroupsRequest:
    """Delete groups without members."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    groups_names: list[String] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteGroupsResponse:
    """Answer to `DeleteGroupsRequest`."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = field(default_factory=list)
