"""PushTelemetry v0 (KIP-714).

Behavior:
    * `ClientMetricsManager.accept` checks the push; any exception is INVALID_REQUEST, as in KafkaApis.
    * A payload larger than ``telemetry.inline.bytes`` after decompression is opened outside the loop.
    * The answer comes when the push is kept, and the connection's next requests wait.
Differs from Kafka (the first four with ``telemetry.error.policy = client-safe`` only, the default):
    * An exception of a plugin stays in the host: the client gets NONE, and the other plugins get the push.
      Kafka answers INVALID_RECORD, which ends telemetry in its clients for good.
    * Null metrics, which librdkafka sends if it has none of the requested metrics, are an empty push. Kafka
      closes the connection, and the client sends the same on the next one.
    * The limit after decompression is ``telemetry.max.decompressed.bytes``, not ``telemetry.max.bytes``.
    * Bytes that are not OTLP are INVALID_RECORD; Kafka leaves that to the plugins.
    * More than 10 000 ResourceMetrics, or 256 different Resources, are TELEMETRY_TOO_LARGE. If there are
      labels, ResourceMetrics with equal Resources reach the plugins as one.
    * After two pushes that are TELEMETRY_TOO_LARGE within three intervals, a client gets a subscription with
      fewer metrics until its pushes fit, unless ``telemetry.too.large.narrow`` is off; see `NarrowedClients`.
    * A sound push that is refused with UNKNOWN_SUBSCRIPTION_ID is stored all the same; plugins get it with a
      mark (``telemetry.keep.unknown.subscription``); the answer is Kafka's. The same payload is not stored
      again when it is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from odradek.broker.answering import Answering, TelemetrySink
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.telemetry.client_metrics_manager import Acceptance, ClientMetricsManager
from odradek.waiting.deferred import Deferred, after
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

Answer = PushTelemetryResponse | Deferred[PushTelemetryResponse]


def invalid_request(response: type[Any]) -> Callable[[Any, ErrorCode, str | None], Any]:
    """The refusal of the telemetry APIs: always INVALID_REQUEST (KafkaApis)."""
    return lambda _request, _code, _message: response(error_code=ErrorCode.INVALID_REQUEST)


@answers(PushTelemetryRequest, refusal=invalid_request(PushTelemetryResponse))
def push_telemetry(request: PushTelemetryRequest, context: RequestContext, broker: Answering) -> Answer:
    telemetry, sink = broker.telemetry, broker.sink
    if request.metrics is None and telemetry.kafka_policy:
        raise WireError("metrics is null")
    return after(telemetry.accept(request, context), partial(keep, telemetry, sink))


def keep(telemetry: ClientMetricsManager, sink: TelemetrySink | None, accepted: Acceptance) -> Answer:
    """Keep an accepted push, then give it to the plugins, which may still refuse it."""
    if isinstance(accepted, PushTelemetryResponse):
        return accepted
    kept = True if sink is None else sink.take(accepted)
    return after(kept, partial(telemetry.settle, accepted))
