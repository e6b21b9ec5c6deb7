"""CreateAcls v1-v3.

Behavior:
    * There is no authorizer: each ACL is SECURITY_DISABLED, as from Kafka without one.
Versions:
    * v1: pattern types. v2: flexible. v3: as v2.
Ignored fields:
    * The ACLs.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.error_text import NO_AUTHORIZER
from odradek.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def refuse(request: CreateAclsRequest, code: ErrorCode, message: str | None) -> CreateAclsResponse:
    """The same error for every ACL: there is no room for one at the top."""
    refused = AclCreationResult(error_code=code, error_message=message)
    return CreateAclsResponse(results=[refused] * len(request.creations))


@answers(CreateAclsRequest, CreateAclsResponse, refusal=refuse)
def create_acls(request: CreateAclsRequest, context: RequestContext, broker: Broker) -> CreateAclsResponse:
    raise ApiError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
