"""DeleteGroups, API key 42 (KIP-229, KIP-1331).

Source: DeleteGroupsRequest.json and DeleteGroupsResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int16, Int32, Message, String, Struct, between, since


class DeletableGroupResult(Struct):
    """One of `DeleteGroupsResponse.results`."""

    group_id: String = ""
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(3)] = None


class DeleteGroupsRequest(Message, api_key=42, versions=between(0, 3), flexible=since(2)):
    """Delete groups without members."""

    groups_names: list[String] = field(default_factory=list)


class DeleteGroupsResponse(Message, answers=DeleteGroupsRequest):
    """Answer to `DeleteGroupsRequest`."""

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = field(default_factory=list)
