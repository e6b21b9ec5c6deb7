"""The destination that Prometheus scrapes: pushes become series, and a listener serves them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from odradek.plugin import TelemetryRecord
from odradek.temporality.budgets.folding import Folding
from odradek_prometheus.client_series import ClientSeries
from odradek_prometheus.exposition import Exposition
from odradek_prometheus.scrape_listener import ScrapeListener
from odradek_prometheus.scrape_settings import ScrapeSettings


class ScrapeForwarder:
    """Takes batches whose totals are committed. A batch is delivered when its series can be scraped."""

    def __init__(self, settings: ScrapeSettings, exposition: Exposition) -> None:
        self.exposition = exposition
        host, port = settings.address
        self.listens = f"{host}:{port}"
        self.listener = ScrapeListener(settings, self.clients, self.foldings)

    async def start(self) -> None:
        """Show the stored clients and listen.

        Raises:
            OSError: The address is in use.
        """
        self.exposition.load(epoch_ms())
        await self.listener.start()

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Show the series of a batch."""
        self.exposition.update(batch)
        # Also without a scraper, clients that are gone are freed.
        self.exposition.expire(epoch_ms())

    async def close(self) -> None:
        """Close the listener."""
        await self.listener.stop()

    def foldings(self) -> Sequence[Folding]:
        """The budgets of the engines, with the clients of now."""
        return self.exposition.foldings(epoch_ms())

    def clients(self) -> Sequence[ClientSeries]:
        """The clients of now, without those that have been silent for too long."""
        self.exposition.expire(epoch_ms())
        return self.exposition.clients()


def epoch_ms() -> int:
    return time.time_ns() // 1_000_000
