"""CreateAcls, API key 30.

Source: CreateAclsRequest.json and CreateAclsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int8, Int16, Int32, Message, String, Struct, between, since

LITERAL = 3
"""A pattern type: exactly this name."""


class AclCreation(Struct):
    """One of `CreateAclsRequest.creations`."""

    resource_type: Int8 = 0
    resource_name: String = ""
    resource_pattern_type: Annotated[Int8, since(1)] = LITERAL
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class AclCreationResult(Struct):
    """One of `CreateAclsResponse.results`."""

    error_code: Int16 = 0
    error_message: String | None = ""


class CreateAclsRequest(Message, api_key=30, versions=between(1, 3), flexible=since(2)):
    """Add ACLs."""

    creations: list[AclCreation] = field(default_factory=list)


class CreateAclsResponse(Message, answers=CreateAclsRequest):
    """Answer to `CreateAclsRequest`."""

    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = field(default_factory=list)
    """One for each ACL, in the order of the request."""
