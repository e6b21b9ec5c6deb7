"""FindCoordinator, API key 10 (KIP-699 for batches).

Source: FindCoordinatorRequest.json and FindCoordinatorResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int8, Int16, Int32, Message, String, Struct, between, since


class Coordinator(Struct):
    """One of `FindCoordinatorResponse.coordinators`."""

    key: String = ""
    node_id: Int32 = 0
    """-1 on error."""
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class FindCoordinatorRequest(Message, api_key=10, versions=between(0, 6), flexible=since(3)):
    """Find the broker that coordinates a group or a transactional id."""

    key: Annotated[String, between(0, 3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    """0 group, 1 transactional id, 2 share group."""
    coordinator_keys: Annotated[list[String], since(4)] = field(default_factory=list)


class FindCoordinatorResponse(Message, answers=FindCoordinatorRequest):
    """Answer to `FindCoordinatorRequest`."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Annotated[Int16, between(0, 3)] = 0
    error_message: Annotated[String | None, between(1, 3)] = ""
    node_id: Annotated[Int32, between(0, 3)] = 0
    """-1 on error."""
    host: Annotated[String, between(0, 3)] = ""
    port: Annotated[Int32, between(0, 3)] = 0
    coordinators: Annotated[list[Coordinator], since(4)] = field(default_factory=list)
