"""The ways in which the host's own metrics leave it.

Their modules take 0.1 s each to import, so they are only imported if they are needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from odradek.meters.health import LoopProbe, Probe, probes
from odradek.meters.metrics_settings import MetricsAddress, MetricsPushSettings
from odradek.metrics.cluster_name import ClusterName

if TYPE_CHECKING:
    from odradek.meters.host_meter import HostMeter, ReadRows
    from odradek.meters.metrics_endpoint import MetricsEndpoint
    from odradek.meters.metrics_push import MetricsPush
    from odradek.meters.metrics_server import ReadObjects
    from odradek.meters.plugin_metrics import WithPlugins
    from odradek.net.listener_tls import ListenerTls

TOPOLOGY_PAGE: Final = "/topology"


class MetricsOutlets:
    """The endpoint for Prometheus, and the pushes to a collector.

    Args:
        read_rows: The current values.
        cluster: A label of all.
        instance: The name of the program among those of its cluster.
        modules: The names of the plugins, by the modules of their hooks.
        not_ready: Why load balancers should send no clients here, other than that the process stops; None
            if they should. Called on other threads.
        not_alive: Why the process counts as dead, other than that its loop does not answer; None if it does
            not. Called on other threads.
        trouble: Which plugin does not work; None if all do. Called on other threads.
        needs_plugins: Whether trouble makes the process unready. The probe of life names it and passes: a
            restart mends nothing.
    """

    def __init__(
        self,
        read_rows: ReadRows,
        cluster: ClusterName,
        instance: str,
        modules: Mapping[str, str],
        not_ready: Probe,
        not_alive: Probe = lambda: None,
        trouble: Probe = lambda: None,
        *,
        needs_plugins: bool = True,
    ) -> None:
        self.read_rows = read_rows
        self.cluster = cluster
        self.instance = instance
        self.modules = modules
        self.not_ready = not_ready
        self.not_alive = not_alive
        self.trouble = trouble
        self.needs_plugins = needs_plugins
        self.draining = False
        """Whether the process stops: it is alive, but should get no clients."""
        self.endpoint: MetricsEndpoint | None = None
        self.loop_probe: LoopProbe | None = None
        self.push: MetricsPush | None = None
        self.topology: ReadObjects | None = None
        """Who uses which topic; None if that is not known. Called on other threads."""

    def meter(self, reader: WithPlugins) -> HostMeter:
        """The metrics, for one reader."""
        from odradek.meters.host_meter import HostMeter

        return HostMeter(self.read_rows, self.cluster, self.instance, reader, self.modules)

    def drain(self) -> None:
        """The process begins to stop: it gets no more clients."""
        self.draining = True

    def readiness(self) -> str | None:
        """Why load balancers should send no clients here; None if they should."""
        if self.draining:
            return "draining"
        return self.not_ready() or (self.trouble() if self.needs_plugins else None)

    def listen(self, address: MetricsAddress | None, token: str | None, tls: ListenerTls | None) -> None:
        """Open the endpoint, if it has an address. Probes watch the running loop; see `MetricsEndpoint`."""
        if address is None:
            return
        from odradek.meters.metrics_endpoint import MetricsEndpoint

        pages = {} if self.topology is None else {TOPOLOGY_PAGE: self.topology}
        self.loop_probe = loop_probe = LoopProbe()
        checks = probes(lambda: loop_probe.problem() or self.not_alive(), self.readiness)
        self.endpoint = MetricsEndpoint(address, self.meter, checks, self.trouble, token, tls, pages)

    def push_to(self, settings: MetricsPushSettings) -> None:
        """Push from now on, if there is a collector; see `MetricsPush`."""
        if settings.endpoint is None:
            return
        from odradek.meters.metrics_push import MetricsPush

        self.push = MetricsPush(settings, self.meter)

    async def close(self, timeout_s: float) -> None:
        """Push the last values within the time, and close the endpoint."""
        try:
            if self.push is not None:
                await asyncio.to_thread(self.push.close, timeout_s)
        finally:
            if self.endpoint is not None:
                await asyncio.to_thread(self.endpoint.close)
