"""PushTelemetry v0 (KIP-714).

Behavior:
    * The ladder of checks is `ClientMetricsManager.push_telemetry`; whatever it raises is INVALID_REQUEST,
      as in KafkaApis.
    * A payload that grows beyond ``telemetry.inline.bytes`` is opened outside the loop; the answer comes
      later and the connection's next requests wait.
Differs from Kafka (the first four with ``telemetry.error.policy = client-safe`` only, the default):
    * What a plugin raises is ours: the client gets NONE, the other plugins get the push. Kafka answers
      INVALID_RECORD, which ends telemetry in its clients for good.
    * Null metrics, which librdkafka sends when it has none of those asked for, are an empty push. Kafka
      closes the connection, and the client sends the same again on the next one.
    * Too large after decompression is measured against ``telemetry.max.decompressed.bytes``, not
      ``telemetry.max.bytes``.
    * Bytes that are not OTLP are INVALID_RECORD; Kafka leaves that to the plugins.
    * More than 10 000 ResourceMetrics, or 256 different Resources, are TELEMETRY_TOO_LARGE. Those with
      equal Resources reach the plugins as one when there are labels to set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.dispatch.deferred import Deferred
from odradek.broker.dispatch.routing import answers
from odradek.plugin.context import RequestContext
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.pending_push import PendingPush
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def invalid_request(response: type[Any]) -> Callable[[Any, ErrorCode, str | None], Any]:
    """The refusal of the telemetry APIs: INVALID_REQUEST, whatever went wrong (KafkaApis)."""
    return lambda _request, _code, _message: response(error_code=ErrorCode.INVALID_REQUEST)


@answers(PushTelemetryRequest, PushTelemetryResponse, refusal=invalid_request(PushTelemetryResponse))
def push_telemetry(
    request: PushTelemetryRequest, context: RequestContext, broker: Broker
) -> PushTelemetryResponse | Deferred:
    if request.metrics is None and broker.telemetry.kafka_policy:
        raise WireError("metrics is null")
    outcome = broker.telemetry.push_telemetry(request, context)
    if outcome.__class__ is PushTelemetryResponse:
        return outcome
    deferred = Deferred()
    if outcome.__class__ is AcceptedPush:
        outcome.reply = deferred.complete
    else:
        assert isinstance(outcome, PendingPush)
        finish = outcome.finish
        broker.offload(outcome.work, lambda result: answer_opened(deferred, finish, result))
    return deferred


def answer_opened(
    deferred: Deferred,
    finish: Callable[[bytes | BaseException], PushTelemetryResponse | AcceptedPush],
    result: bytes | BaseException,
) -> None:
    """A payload was opened elsewhere; the push may have to wait once more, until it is kept."""
    try:
        outcome: object = finish(result)
    except Exception as error:  # noqa: BLE001  a bug is the response, for the dispatcher to answer
        outcome = error
    if isinstance(outcome, AcceptedPush):
        outcome.reply = deferred.complete
    else:
        deferred.complete(outcome)
