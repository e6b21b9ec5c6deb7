"""DeleteAcls v1-v3.

Behavior:
    * There is no authorizer: each filter is SECURITY_DISABLED, as from Kafka without one.
Versions:
    * v1: pattern types. v2: flexible. v3: as v2.
Ignored fields:
    * The filters. Kafka closes the connection if a type in one of them is UNKNOWN (0).
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.error_text import NO_AUTHORIZER
from odradek.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def refuse(request: DeleteAclsRequest, code: ErrorCode, message: str | None) -> DeleteAclsResponse:
    """The same error for every filter: there is no room for one at the top."""
    refused = DeleteAclsFilterResult(error_code=code, error_message=message)
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))


@answers(DeleteAclsRequest, DeleteAclsResponse, refusal=refuse)
def delete_acls(request: DeleteAclsRequest, context: RequestContext, broker: Broker) -> DeleteAclsResponse:
    raise ApiError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
