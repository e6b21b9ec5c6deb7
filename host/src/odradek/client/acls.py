"""DescribeAcls, CreateAcls and DeleteAcls (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from odradek.client.cluster import Cluster
from odradek.client.errors import RequestFailed, check, failure
from odradek.plugin.authorizer import AclOperation, AclPermission, PatternType, ResourceType
from odradek.security.acl import Acl, AclEntry, AclFilter, ResourcePattern, code_of
from odradek.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.wire.messages.describe_acls import AclDescription, DescribeAclsRequest, DescribeAclsResponse

Described = TypeVar("Described", DescribeAclsRequest, DeleteAclsFilter)


def describe(cluster: Cluster, wanted: AclFilter) -> list[Acl]:
    """The ACLs that a filter selects, in the order of the broker."""
    response: DescribeAclsResponse = cluster.any().send(filled(DescribeAclsRequest(), wanted))
    check(response.error_code, response.error_message, "DescribeAcls")
    return [
        Acl(pattern_of(resource.resource_type, resource.resource_name, resource.pattern_type), entry_of(row))
        for resource in response.resources
        for row in resource.acls
    ]


def create(cluster: Cluster, acls: Sequence[Acl]) -> dict[Acl, RequestFailed | None]:
    """Create ACLs and return the result of each."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                resource_pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for pattern, entry in acls
        ]
    )
    response: CreateAclsResponse = cluster.controller().send(request)
    results = zip(acls, response.results, strict=True)
    return {
        acl: failure(result.error_code, result.error_message, str(acl.pattern)) for acl, result in results
    }


def delete(cluster: Cluster, filters: Sequence[AclFilter]) -> list[Acl]:
    """Delete the ACLs that any of the filters selects, and return them."""
    request = DeleteAclsRequest(filters=[filled(DeleteAclsFilter(), wanted) for wanted in filters])
    response: DeleteAclsResponse = cluster.controller().send(request)
    deleted: dict[Acl, None] = {}
    for result in response.filter_results:
        check(result.error_code, result.error_message, "DeleteAcls")
        for match in result.matching_acls:
            check(match.error_code, match.error_message, match.resource_name)
            pattern = pattern_of(match.resource_type, match.resource_name, match.pattern_type)
            deleted[Acl(pattern, entry_of(match))] = None
    return list(deleted)


def filled(fields: Described, wanted: AclFilter) -> Described:
    """Write a filter into the fields of a request."""
    fields.resource_type_filter = wanted.resource_type
    fields.resource_name_filter = wanted.name
    fields.pattern_type_filter = wanted.pattern_type
    fields.principal_filter = wanted.principal
    fields.host_filter = wanted.host
    fields.operation = wanted.operation
    fields.permission_type = wanted.permission
    return fields


def pattern_of(resource_type: int, name: str, pattern_type: int) -> ResourcePattern:
    """A pattern of a response; values of a newer broker are UNKNOWN."""
    return ResourcePattern(code_of(ResourceType, resource_type), name, code_of(PatternType, pattern_type))


def entry_of(row: AclDescription | DeleteAclsMatchingAcl) -> AclEntry:
    """An entry of a response; values of a newer broker are UNKNOWN."""
    operation, permission = code_of(AclOperation, row.operation), code_of(AclPermission, row.permission_type)
    return AclEntry(row.principal, row.host, operation, permission)
