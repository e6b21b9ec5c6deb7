"""A receiver, which is called for each push on the host's event loop and must not block."""

from __future__ import annotations

import logging
from collections import Counter

from odradek.plugin import ClientTelemetryPayload, RequestContext

log = logging.getLogger(__name__)


class ExampleReceiver:
    """Counts pushes by client software."""

    def __init__(self) -> None:
        self.pushes: Counter[str] = Counter()

    def client_receiver(self) -> ExampleReceiver:
        """Return itself: it is its own receiver."""
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """Take one push; `payload.data` is a serialized OTLP ``MetricsData``."""
        self.pushes[context.connection.client_software_name] += 1

    def close(self) -> None:
        """Log the counts. Called once when the host stops."""
        log.info("pushes by client software", extra={"pushes": dict(self.pushes)})
