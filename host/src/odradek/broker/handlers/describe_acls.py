"""DescribeAcls v1-v3.

Behavior:
    * There is no authorizer: SECURITY_DISABLED, as from Kafka without one.
Versions:
    * v1: pattern types. v2: flexible. v3: as v2.
Ignored fields:
    * The filter. Kafka closes the connection if one of its types is UNKNOWN (0).
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

NO_AUTHORIZER = "No Authorizer is configured on the broker"  # Kafka's text, which has no full stop here


@answers(DescribeAclsRequest, DescribeAclsResponse)
def describe_acls(
    request: DescribeAclsRequest, context: RequestContext, broker: Broker
) -> DescribeAclsResponse:
    raise ApiError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
