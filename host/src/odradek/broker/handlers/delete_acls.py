"""DeleteAcls v1-v3.

Behavior:
    * The caller needs ALTER on the cluster.
    * The ACLs that any filter selects are removed, up to 200 in one transaction, permissions first. Each
      filter lists what it selected; two may list the same ACL, and a filter that selects nothing is not
      refused.
    * A pattern type MATCH selects the patterns that fit a resource name, ANY those with that very name.
    * A code that is not known makes the filter INVALID_REQUEST, and 0 closes the connection.
    * At most 10000 ACLs in one request (INVALID_REQUEST for every filter, nothing is removed).
    * Without the standard authorizer each filter is SECURITY_DISABLED.
Versions:
    * v1: pattern types. v2: flexible. v3: as v2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial

from odradek.broker.acl_requests import acl_filter, kept_acls
from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.security.acl import Acl
from odradek.wire.api_error import ApiError
from odradek.wire.error_text import NO_AUTHORIZER
from odradek.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


@answers(DeleteAclsRequest, refuses="filters", each="filter_results")
def delete_acls(
    request: DeleteAclsRequest, context: RequestContext, broker: Broker
) -> Generator[DeleteAclsFilterResult | Composed | None, None, DeleteAclsResponse]:
    """Delete the ACLs; yield the result of each filter."""
    filters = [acl_filter(wanted) for wanted in request.filters]
    yield None
    broker.authorization.require_on_cluster(context, AclOperation.ALTER)
    acls = kept_acls(broker, NO_AUTHORIZER)
    for outcome in (yield from acls.delete_in_steps(filters)):
        if isinstance(outcome, ApiError):
            yield DeleteAclsFilterResult(error_code=outcome.code, error_message=outcome.message)
        else:
            parts: list[Callable[[], DeleteAclsMatchingAcl]] = [partial(matching, acl) for acl in outcome]
            yield composed(DeleteAclsFilterResult(error_message=None), "matching_acls", parts)
    return DeleteAclsResponse()


def matching(acl: Acl) -> DeleteAclsMatchingAcl:
    """An ACL that was deleted."""
    pattern, entry = acl
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
