"""All receivers and exporters as one forwarder, so that they can read a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin

RECEIVERS: Final = "receivers"
"""The name of this forwarder. A plugin's forwarder of this name would be called ``<plugin>.receivers``."""


class ReceiverForwarder:
    """Gives each record to the receivers and exporters. As in a host, a plugin that raises is counted, and
    does not hold up the others.
    """

    def __init__(self, receivers: ClientMetricsReceiverPlugin) -> None:
        self.receivers = receivers

    async def start(self) -> None:
        """Nothing: the plugins are registered."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Call the plugins, record by record. They are not called for a record without metrics."""
        for record in batch:
            if record.payload.data:
                self.receivers.export(record.context, record.payload, record.push_interval_ms)

    async def close(self) -> None:
        """Nothing: the plugins are closed by their owner."""
