"""The ways in which the host's own metrics leave it.

Their modules take 0.1 s each to import, so they are only imported if they are needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from odradek.server.meters.metrics_settings import MetricsAddress, MetricsPushSettings
from odradek.telemetry.client_metrics_stats import MetricRow

if TYPE_CHECKING:
    from odradek.server.meters.metrics_endpoint import MetricsEndpoint
    from odradek.server.meters.metrics_push import MetricsPush
    from odradek.server.sockets.listener_tls import ListenerTls


class MetricsOutlets:
    """The endpoint for Prometheus, and the pushes to a collector.

    Args:
        read_rows: The current values.
        is_ready: Whether load balancers should send clients here.
    """

    def __init__(self, read_rows: Callable[[], Iterable[MetricRow]], is_ready: Callable[[], bool]) -> None:
        self.read_rows = read_rows
        self.is_ready = is_ready
        self.endpoint: MetricsEndpoint | None = None
        self.push: MetricsPush | None = None

    def listen(self, address: MetricsAddress, token: str | None, tls: ListenerTls | None) -> None:
        """Open the endpoint; see `MetricsEndpoint`."""
        from odradek.server.meters.metrics_endpoint import MetricsEndpoint

        self.endpoint = MetricsEndpoint(address, self.read_rows, self.is_ready, token, tls)

    def push_to(self, settings: MetricsPushSettings) -> None:
        """Push from now on; see `MetricsPush`."""
        from odradek.server.meters.metrics_push import MetricsPush

        self.push = MetricsPush(settings, self.read_rows)

    async def close(self, timeout_s: float) -> None:
        """Push the last values within the time, and close the endpoint."""
        try:
            if self.push is not None:
                await asyncio.to_thread(self.push.close, timeout_s)
        finally:
            if self.endpoint is not None:
                await asyncio.to_thread(self.endpoint.close)
