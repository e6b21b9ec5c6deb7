"""GetTelemetrySubscriptions v0 (KIP-714).

Behavior:
    * `ClientMetricsManager.get_telemetry_subscriptions` makes the response; any exception is INVALID_REQUEST.
    * The throttle time comes from the request quota only, never from the rest of the push interval.
"""

from __future__ import annotations

from odradek.broker.answering import Answering
from odradek.broker.dispatch.routes import answers
from odradek.broker.handlers.push_telemetry import invalid_request
from odradek.plugin.context import RequestContext
from odradek.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


@answers(GetTelemetrySubscriptionsRequest, refusal=invalid_request(GetTelemetrySubscriptionsResponse))
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: RequestContext, broker: Answering
) -> GetTelemetrySubscriptionsResponse:
    return broker.telemetry.get_telemetry_subscriptions(request, context)
