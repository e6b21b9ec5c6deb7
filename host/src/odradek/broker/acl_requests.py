"""ACLs and filters in requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import CloseConnection
from odradek.plugin.authorizer import AclOperation, AclPermission, PatternType, ResourceType
from odradek.security.acl import Acl, AclEntry, AclFilter, ResourcePattern, code_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_acls import AclCreation
from odradek.wire.messages.delete_acls import DeleteAclsFilter
from odradek.wire.messages.describe_acls import DescribeAclsRequest

if TYPE_CHECKING:
    from odradek.broker.acls import Acls

UNKNOWN = 0
"""The code of an unknown value in each enumeration; Kafka takes it for a fault of the client's software."""


def kept_acls(broker: Broker, problem: str) -> Acls:
    """The ACLs of the host.

    Raises:
        ApiError: SECURITY_DISABLED: it keeps none.
    """
    if broker.acls is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, problem)
    return broker.acls


def check_codes(creation: AclCreation) -> None:
    """Check an ACL that a client wants to create, whatever the client may do.

    Raises:
        CloseConnection: A code is 0.
    """
    types = creation.resource_type, creation.resource_pattern_type
    if UNKNOWN in (*types, creation.operation, creation.permission_type):
        raise CloseConnection("an ACL with an unknown code")


def new_acl(creation: AclCreation) -> Acl:
    """The ACL that a client wants to create.

    Raises:
        ApiError: UNKNOWN_SERVER_ERROR, as from Kafka: a value is only allowed in a filter.
    """
    acl = Acl(
        ResourcePattern(
            code_of(ResourceType, creation.resource_type),
            creation.resource_name,
            code_of(PatternType, creation.resource_pattern_type),
        ),
        AclEntry(
            creation.principal,
            creation.host,
            code_of(AclOperation, creation.operation),
            code_of(AclPermission, creation.permission_type),
        ),
    )
    pattern, entry = acl
    if (
        pattern.resource_type is ResourceType.ANY
        or pattern.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or entry.operation is AclOperation.ANY
        or entry.permission is AclPermission.ANY
    ):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return acl


def acl_filter(fields: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """A filter of a request.

    Raises:
        CloseConnection: A code is 0.
    """
    codes = fields.resource_type_filter, fields.pattern_type_filter, fields.operation, fields.permission_type
    if UNKNOWN in codes:
        raise CloseConnection("a filter of ACLs with an unknown code")
    return AclFilter(
        resource_type=code_of(ResourceType, fields.resource_type_filter),
        name=fields.resource_name_filter,
        pattern_type=code_of(PatternType, fields.pattern_type_filter),
        principal=fields.principal_filter,
        host=fields.host_filter,
        operation=code_of(AclOperation, fields.operation),
        permission=code_of(AclPermission, fields.permission_type),
    )
