"""DeleteAcls, API key 31.

Source: DeleteAclsRequest.json and DeleteAclsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int8, Int16, Int32, Message, String, Struct, between, since

LITERAL = 3
"""A pattern type: exactly this name."""


class DeleteAclsFilter(Struct):
    """One of `DeleteAclsRequest.filters`; null matches any."""

    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Annotated[Int8, since(1)] = LITERAL
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsMatchingAcl(Struct):
    """One of `DeleteAclsFilterResult.matching_acls`."""

    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Annotated[Int8, since(1)] = LITERAL
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsFilterResult(Struct):
    """One of `DeleteAclsResponse.filter_results`."""

    error_code: Int16 = 0
    error_message: String | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = field(default_factory=list)


class DeleteAclsRequest(Message, api_key=31, versions=between(1, 3), flexible=since(2)):
    """Delete the ACLs that match any of several filters."""

    filters: list[DeleteAclsFilter] = field(default_factory=list)


class DeleteAclsResponse(Message, answers=DeleteAclsRequest):
    """Answer to `DeleteAclsRequest`."""

    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = field(default_factory=list)
    """One for each filter, in the order of the request."""
