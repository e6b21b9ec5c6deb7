"""Heartbeat v0-v4: the classic protocol.

Behavior:
    * REBALANCE_IN_PROGRESS asks a member to join again, and keeps its session alive.
Versions:
    * v3: static members.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.group import classic_protocol
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@answers(HeartbeatRequest)
def heartbeat(request: HeartbeatRequest, context: RequestContext, broker: Broker) -> HeartbeatResponse:
    broker.authorization.require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    classic_protocol.heartbeat(broker.groups, request)
    return HeartbeatResponse()
