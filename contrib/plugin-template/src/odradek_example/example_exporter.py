"""An exporter, which is called like a receiver and also gets the push interval of the client."""

from __future__ import annotations

import logging
from collections import Counter

from odradek.plugin import ClientTelemetryContext, ClientTelemetryPayload

log = logging.getLogger(__name__)


class ExampleExporter:
    """Counts pushes by push interval, which shows the subscriptions that are in use."""

    def __init__(self) -> None:
        self.pushes: Counter[int] = Counter()

    def client_telemetry_exporter(self) -> ExampleExporter:
        """Return itself: it is its own exporter."""
        return self

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        """Take one push; `context.request` is what a receiver gets."""
        self.pushes[context.push_interval_ms] += 1

    def close(self) -> None:
        """Log the counts. Called once when the host stops."""
        log.info("pushes by push interval in ms", extra={"pushes": dict(self.pushes)})
