"""Heartbeat v0-v4: the classic protocol.

Behavior:
    * REBALANCE_IN_PROGRESS asks a member to join again, and keeps its session alive.
Versions:
    * v3: static members.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@answers(HeartbeatRequest, HeartbeatResponse)
def heartbeat(request: HeartbeatRequest, _context: RequestContext, broker: Broker) -> HeartbeatResponse:
    broker.groups.classic.heartbeat(request)
    return HeartbeatResponse()
