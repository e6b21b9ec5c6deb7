"""DescribeAcls, API key 29.

Source: DescribeAclsRequest.json and DescribeAclsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int8, Int16, Int32, Message, String, Struct, between, since

LITERAL = 3
"""A pattern type: exactly this name."""


class AclDescription(Struct):
    """One of `DescribeAclsResource.acls`."""

    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResource(Struct):
    """One of `DescribeAclsResponse.resources`."""

    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Annotated[Int8, since(1)] = LITERAL
    acls: list[AclDescription] = field(default_factory=list)


class DescribeAclsRequest(Message, api_key=29, versions=between(1, 3), flexible=since(2)):
    """List the ACLs that match a filter; null matches any."""

    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Annotated[Int8, since(1)] = LITERAL
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResponse(Message, answers=DescribeAclsRequest):
    """Answer to `DescribeAclsRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    resources: list[DescribeAclsResource] = field(default_factory=list)
