"""A push that is to be stored, on its way into the log or to the forwarders."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance


@dataclass(slots=True, eq=False)
class AcceptedPush:
    """A push whose payload is open and valid. `ClientMetricsManager.settle` makes its response."""

    instance: ClientMetricsInstance
    context: RequestContext
    payload: ClientTelemetryPayload
    codec: int
    """Kafka's number of the compression that the client used."""
    subscription_id: int
    """As the client sent it."""
    is_empty: bool
    """The client sent no metrics at all: receivers do not get the push."""
    opened_ns: int
    """How long it took to open the payload."""

    def record(self) -> TelemetryRecord:
        """The push as forwarders get it."""
        instance = self.instance
        return TelemetryRecord(
            self.context,
            instance.push_interval_ms,
            self.payload,
            self.subscription_id,
            self.codec,
        )
