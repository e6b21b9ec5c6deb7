"""CreateAcls v1-v3.

Behavior:
    * The caller needs ALTER on the cluster.
    * The legal ACLs are stored and apply from the answer on, also if others are refused; up to 200 in one
      transaction, denials first. One that exists already is not refused.
    * An illegal ACL is INVALID_REQUEST. If a type, operation or permission of any ACL is ANY or MATCH, every
      ACL is UNKNOWN_SERVER_ERROR without a message, as in Kafka, and if one is 0 the connection is closed.
    * An operation that the type of resource does not have, a host that is no address and a principal of any
      type are stored, as in Kafka.
    * At most 10000 new ACLs in one request (POLICY_VIOLATION for all).
    * Without the standard authorizer each ACL is SECURITY_DISABLED.
Versions:
    * v1: pattern types. v2: flexible. v3: as v2.
Differs from Kafka:
    * A new ACL beyond ``acls.max`` or ``name.max.length`` is POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.acl_requests import check_codes, kept_acls, new_acl
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.security.acl import Acl
from odradek.wire.error_code import ErrorCode
from odradek.wire.error_text import NO_AUTHORIZER
from odradek.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

AT_A_TIME = 100
"""ACLs that are read in one step."""
CREATED = AclCreationResult()
"""The outcome of a legal ACL. As in Kafka the message is empty, not null."""


def result(code: ErrorCode, message: str | None) -> AclCreationResult:
    """The outcome for one ACL."""
    return AclCreationResult(error_code=code, error_message=message)


@answers(CreateAclsRequest, refuses="creations", each="results")
def create_acls(
    request: CreateAclsRequest, context: RequestContext, broker: Broker
) -> Generator[AclCreationResult | None, None, CreateAclsResponse]:
    for number, creation in enumerate(request.creations, 1):
        check_codes(creation)
        if not number % AT_A_TIME:
            yield None
    broker.authorization.require_on_cluster(context, AclOperation.ALTER)
    acls = kept_acls(broker, NO_AUTHORIZER)
    wanted: list[Acl] = []
    for creation in request.creations:
        wanted.append(new_acl(creation))
        if not len(wanted) % AT_A_TIME:
            yield None
    for error in (yield from acls.create_in_steps(wanted)):
        yield CREATED if error is None else result(error.code, error.message)
    return CreateAclsResponse()
