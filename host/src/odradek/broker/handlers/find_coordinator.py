"""FindCoordinator v0-v6.

Behavior:
    * This node coordinates everything. Keys of an unknown type, or of share groups (type 2), are
      INVALID_REQUEST, as in Kafka without share groups.
Versions:
    * v4 has several keys with an answer each; older versions have one.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION = 0, 1


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


@answers(FindCoordinatorRequest, FindCoordinatorResponse, refusal=refuse)
def find_coordinator(
    request: FindCoordinatorRequest, context: RequestContext, broker: Broker
) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if context.api_version >= 4 else [request.key]
    coordinators = [coordinator(key, request.key_type, context, broker) for key in keys]
    if context.api_version >= 4:
        return FindCoordinatorResponse(coordinators=coordinators)
    (only,) = coordinators
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def coordinator(key: str, key_type: int, context: RequestContext, broker: Broker) -> Coordinator:
    """The coordinator of a group or a transactional id."""
    if key_type not in (GROUP, TRANSACTION):
        return refused(key, ErrorCode.INVALID_REQUEST, f"no coordinators of type {key_type} here")
    endpoint = broker.endpoint(context.connection)
    return Coordinator(key=key, node_id=broker.settings.node_id, host=endpoint.host, port=endpoint.port)
