"""DeleteAcls, API key 31.

Source: DeleteAclsRequest.json and DeleteAclsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int8, Int16, Int32, String, Versions, between, since

LITERAL = 3
"""A pattern type: exactly this name."""


@dataclass(slots=True, kw_only=True)
class DeleteAclsFilter:
    """One of `DeleteAclsRequest.filters`; null matches any."""

    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Annotated[Int8, since(1)] = LITERAL
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@dataclass(slots=True, kw_only=True)
class DeleteAclsMatchingAcl:
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


@dataclass(slots=True, kw_only=True)
class DeleteAclsFilterResult:
    """One of `DeleteAclsResponse.filter_results`."""

    error_code: Int16 = 0
    error_message: String | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteAclsRequest:
    """Delete the ACLs that match any of several filters."""

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[Versions] = between(1, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    filters: list[DeleteAclsFilter] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DeleteAclsResponse:
    """Answer to `DeleteAclsRequest`."""

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[Versions] = between(1, 3)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = field(default_factory=list)
    """One for each filter, in the order of the request."""
