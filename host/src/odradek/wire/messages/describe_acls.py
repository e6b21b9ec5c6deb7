"""DescribeAcls, API key 29.

Source: DescribeAclsRequest.json and DescribeAclsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int8, Int16, Int32, String, Versions, between, since

LITERAL = 3
"""A pattern type: exactly this name."""


@dataclass(slots=True, kw_only=True)
class AclDescription:
    """One of `DescribeAclsResource.acls`."""

    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@dataclass(slots=True, kw_only=True)
class DescribeAclsResource:
    """One of `DescribeAclsResponse.resources`."""

    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Annotated[Int8, since(1)] = LITERAL
    acls: list[AclDescription] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeAclsRequest:
    """List the ACLs that match a filter; null matches any."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[Versions] = between(1, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Annotated[Int8, since(1)] = LITERAL
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@dataclass(slots=True, kw_only=True)
class DescribeAclsResponse:
    """Answer to `DescribeAclsRequest`."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[Versions] = between(1, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    resources: list[DescribeAclsResource] = field(default_factory=list)
