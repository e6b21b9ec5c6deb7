"""CreateAcls, API key 30.

Source: CreateAclsRequest.json and CreateAclsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int8, Int16, Int32, String, Versions, between, since

LITERAL = 3
"""A pattern type: exactly this name."""


@dataclass(slots=True, kw_only=True)
class AclCreation:
    """One of `CreateAclsRequest.creations`."""

    resource_type: Int8 = 0
    resource_name: String = ""
    resource_pattern_type: Annotated[Int8, since(1)] = LITERAL
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@dataclass(slots=True, kw_only=True)
class AclCreationResult:
    """One of `CreateAclsResponse.results`."""

    error_code: Int16 = 0
    error_message: String | None = ""


@dataclass(slots=True, kw_only=True)
class CreateAclsRequest:
    """Add ACLs."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[Versions] = between(1, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    creations: list[AclCreation] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CreateAclsResponse:
    """Answer to `CreateAclsRequest`."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[Versions] = between(1, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = field(default_factory=list)
    """One for each ACL, in the order of the request."""
