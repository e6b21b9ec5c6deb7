"""The plugins of one program: those that are active, and the objects that get each push or client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from odradek.hosting.active_plugin import ActivePlugin, activate
from odradek.hosting.enricher_threads import EnricherThreads
from odradek.hosting.offered_objects import close_offers, register
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.hosting.plugin_thread import PluginThreads
from odradek.hosting.plugin_watch import PluginWatch
from odradek.meters.metrics import plugin_rows
from odradek.metrics.metric import MetricRow
from odradek.plugin.plugin_stats import PluginStats
from odradek.programs.spine import Part, Spine
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin


class Plugins:
    """The plugins of one program.

    Args:
        spine: Of the program.
        manager: The installed plugins; None to discover them.
        on_loop: Whether receivers are called on the loop, which they may block.

    Raises:
        ConfigError: A plugin, its table or one of its objects is not usable.
    """

    def __init__(self, spine: Spine, manager: HostPluginManager | None, *, on_loop: bool = True) -> None:
        self.spine, self.clock = spine, spine.clock
        config, settings = spine.config, spine.config.telemetry
        if config.metrics_listener is not None or config.metrics_push.endpoint is not None:
            from odradek.meters.plugin_metrics import provided  # takes a tenth of a second

            provided()
        self.manager = manager or HostPluginManager()
        self.watch = PluginWatch(self.manager.owner)
        self.threads = PluginThreads(settings.thread_queue_max_bytes, self.clock)
        self.receivers = ClientMetricsReceiverPlugin(
            self.clock, settings.slow_ms, settings.slow_limit, self.threads.displace if on_loop else None
        )
        self.enrichers = Enrichers(
            self.clock,
            spine.timer,
            spine.cluster,
            settings.slow_ms,
            settings.labels_wait_ms,
            partial(EnricherThreads, host_loop=asyncio.get_running_loop()),
        )
        self.stats: list[PluginStats] = []
        """Of objects that other parts call."""
        self.part = Part(self.watch.start, self.close, metric_rows=self.metric_rows)
        with self.watch:
            if manager is None:
                self.manager.load_installed()
                self.manager.give_all(config.requested_plugins)
            spine.modules.update(self.manager.modules())
            self.all: list[ActivePlugin] = activate(self.manager, config.plugins, config.requested_plugins)
            register(self.all, self.receivers, self.enrichers)

    def close(self) -> None:
        """Close what the plugins offer, the last plugin first."""
        self.enrichers.close(self.spine.stop_s)
        for plugin in reversed(self.all):
            close_offers(plugin, self.spine.stop_s)
        self.watch.stop()

    def metric_rows(self) -> Iterator[MetricRow]:
        """The calls of the plugins."""
        stats = [*self.receivers.stats(), *self.enrichers.stats(), *self.stats]
        yield from plugin_rows(stats, self.threads.waiting())
