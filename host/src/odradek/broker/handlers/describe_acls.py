"""DescribeAcls v1-v3.

Behavior:
    * The caller needs DESCRIBE on the cluster.
    * The ACLs that the filter selects, grouped by resource pattern; nothing found is not an error.
    * A pattern type MATCH selects the patterns that fit a resource name, ANY those with that very name.
    * A code that is not known selects nothing, and 0 closes the connection.
    * Without the standard authorizer: SECURITY_DISABLED.
Versions:
    * v1: pattern types. v2: flexible. v3: as v2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from itertools import groupby
from operator import itemgetter

from odradek.broker.acl_requests import acl_filter, kept_acls
from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.security.acl import Acl, AclEntry, ResourcePattern
from odradek.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

NO_AUTHORIZER = "No Authorizer is configured on the broker"  # Kafka's text, which has no full stop here


@answers(DescribeAclsRequest, each="resources", droppable=True)
def describe_acls(
    request: DescribeAclsRequest, context: RequestContext, broker: Broker
) -> Generator[DescribeAclsResource | Composed | None, None, DescribeAclsResponse]:
    wanted = acl_filter(request)
    broker.authorization.require_on_cluster(context, AclOperation.DESCRIBE)
    for part in kept_acls(broker, NO_AUTHORIZER).selected(wanted):
        for _, same in groupby(part, key=itemgetter(0)):
            yield resource(list(same))
        yield None
    return DescribeAclsResponse()


def resource(acls: list[Acl]) -> DescribeAclsResource | Composed:
    """The ACLs of one resource pattern."""
    pattern: ResourcePattern = acls[0].pattern
    parts: list[Callable[[], AclDescription]] = [partial(description, acl.entry) for acl in acls]
    described = DescribeAclsResource(
        resource_type=pattern.resource_type, resource_name=pattern.name, pattern_type=pattern.pattern_type
    )
    return composed(described, "acls", parts)


def description(entry: AclEntry) -> AclDescription:
    """One ACL of a resource pattern."""
    return AclDescription(
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
