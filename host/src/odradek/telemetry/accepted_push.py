"""A push that passed the gate and is OTLP, on its way into the log or to the forwarders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance


@dataclass(slots=True, eq=False)
class AcceptedPush:
    """Answered when it is settled."""

    instance: ClientMetricsInstance
    context: RequestContext
    payload: ClientTelemetryPayload
    codec: int
    """Kafka's number of the compression that the client used."""
    is_empty: bool
    """The client sent no metrics at all: receivers do not see it."""
    opened_ns: int
    """How long opening took."""
    answer: Callable[[AcceptedPush, bool], Any]
    """The response, given whether the push was kept."""
    reply: Callable[[Any], None] | None = None
    """Set by whoever waits for the response."""

    def settle(self, kept: bool) -> None:
        """It is kept, or cannot be; call once."""
        try:
            response = self.answer(self, kept)
        except Exception as error:  # noqa: BLE001  a bug must not hit the other pushes: it is the response
            response = error
        if self.reply is not None:
            self.reply(response)

    def record(self) -> TelemetryRecord:
        """The same for a forwarder."""
        instance = self.instance
        return TelemetryRecord(
            self.context, instance.push_interval_ms, self.payload, instance.subscription_id, self.codec
        )


class TelemetrySink(Protocol):
    """Where accepted pushes are kept."""

    def take(self, push: AcceptedPush) -> bool | None:
        """Keep a push.

        Returns:
            Whether it is kept; None when ``push.settle`` will tell, which is never called from within.
        """
