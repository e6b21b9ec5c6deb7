"""FindCoordinator v0-v6.

Behavior:
    * This node coordinates everything. Keys of an unknown type, or of share groups (type 2), are
      INVALID_REQUEST, as in Kafka without share groups.
    * The message of a success is ``NONE`` in v1-v3 and empty from v4 on; so is that of a key of type 2.
Versions:
    * v4 has several keys with an answer each; older versions have one.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.authorization import refusal
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.error_text import MALFORMED_REQUEST
from odradek.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION, SHARE = 0, 1, 2
SUCCESS = "NONE"  # Kafka's text
SEVERAL_KEYS_VERSION = 4


def refuse(request: FindCoordinatorRequest, code: ErrorCode, message: str | None) -> FindCoordinatorResponse:
    """The same error for every key, and at the top for versions that have one key."""
    return FindCoordinatorResponse(
        error_code=code,
        error_message=message,
        node_id=-1,
        port=-1,
        coordinators=[refused(key, code, message) for key in request.coordinator_keys],
    )


def refused(key: str, code: ErrorCode, message: str | None) -> Coordinator:
    """No coordinator for this key."""
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)


@answers(FindCoordinatorRequest, refusal=refuse, each="coordinators", droppable=True)
def find_coordinator(
    request: FindCoordinatorRequest, context: RequestContext, broker: Broker
) -> Generator[Coordinator, None, FindCoordinatorResponse]:
    if request.key_type not in (GROUP, TRANSACTION, SHARE):
        raise ApiError(ErrorCode.INVALID_REQUEST, MALFORMED_REQUEST)
    if request.key_type == SHARE:
        broker.authorization.require_on_cluster(context, AclOperation.CLUSTER_ACTION)
    kind = ResourceType.TRANSACTIONAL_ID if request.key_type == TRANSACTION else ResourceType.GROUP
    sees = broker.authorization.rights(context, AclOperation.DESCRIBE, kind)
    if context.api_version >= SEVERAL_KEYS_VERSION:
        for key in request.coordinator_keys:
            if request.key_type == SHARE or sees.allows(key):
                yield coordinator(key, request.key_type, context, broker)
            else:
                yield refused(key, refusal(kind).code, "")
        return FindCoordinatorResponse()
    if request.key_type != SHARE and not sees.allows(request.key):
        raise refusal(kind)
    only = coordinator(request.key, request.key_type, context, broker)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=MALFORMED_REQUEST if only.error_code else SUCCESS,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def coordinator(key: str, key_type: int, context: RequestContext, broker: Broker) -> Coordinator:
    """The coordinator of a group or a transactional id."""
    if key_type == SHARE:
        return refused(key, ErrorCode.INVALID_REQUEST, "")
    node = broker.nodes.coordinator(key, context.connection)
    return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port)
