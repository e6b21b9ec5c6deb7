"""What ShareFetch and ShareAcknowledge check first."""

from __future__ import annotations

from typing import Protocol

from odradek.broker.broker import Broker
from odradek.broker.features import SHARE_VERSION
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

MAX_MEMBER_ID_LENGTH = 36


class MemberRequest(Protocol):
    """A request of a member of a share group."""

    @property
    def group_id(self) -> str | None: ...

    @property
    def member_id(self) -> str | None: ...


def require_member(request: MemberRequest, context: RequestContext, broker: Broker) -> tuple[str, str]:
    """The group and the member of a request. The member need not have joined.

    Raises:
        ApiError: UNSUPPORTED_VERSION: the feature is off. INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED.
    """
    broker.features.require(SHARE_VERSION)
    group_id, member_id = request.group_id, request.member_id
    if group_id is None or not member_id or len(member_id) > MAX_MEMBER_ID_LENGTH:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    broker.authorization.require(context, AclOperation.READ, ResourceType.GROUP, group_id)
    return group_id, member_id
