"""The plugins that get each push when it is accepted; after Kafka's ClientMetricsReceiverPlugin.

The one place that catches the exceptions of plugins: the next plugin is always called. A plugin that keeps
blocking the event loop is moved to a thread of its own, where it delays only itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from odradek.plugin.context import ClientTelemetryContext, RequestContext
from odradek.plugin.interface_check import check_interface
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.plugin_stats import PluginStats
from odradek.plugin.protocols import (
    ClientTelemetry,
    ClientTelemetryExporter,
    ClientTelemetryExporterProvider,
    ClientTelemetryReceiver,
)
from odradek.waiting.clock import Clock

log = logging.getLogger(__name__)

HOOK = "export_metrics"
Context = TypeVar("Context")
Export = Callable[[Context, ClientTelemetryPayload], None]
Displace = Callable[[Export[Any], PluginStats], Export[Any]]
"""Start a thread that calls the plugin and counts the calls. Returns a function that queues a push for it
without blocking, and counts pushes that find no room.
"""


@dataclass(frozen=True, slots=True)
class Registered(Generic[Context]):
    """A receiver or an exporter, and its counters."""

    plugin: object
    export: Export[Context]
    stats: PluginStats
    displaced: bool = False
    """It has a thread of its own."""


class ClientMetricsReceiverPlugin:
    """Receivers and exporters by plugin name. Both may be added and removed at any time, also during a call.

    Order of export: all receivers as they were registered, then all exporters.

    Args:
        clock: Measures the calls.
        slow_ms: A longer call is slow.
        slow_limit: How many times `slow_ms` the slow calls of one minute may take before a plugin is moved to
            a thread of its own; 0 leaves it on the event loop.
        displace: Moves a plugin to a thread; None leaves all plugins on the event loop.
    """

    def __init__(
        self, clock: Clock, slow_ms: int = 5, slow_limit: int = 0, displace: Displace | None = None
    ) -> None:
        self.clock = clock
        self.monotonic_ns = clock.monotonic_ns
        self.slow_ns = slow_ms * 1_000_000
        self.limit_ns = slow_limit * self.slow_ns
        self.displace = displace
        self.receivers: tuple[Registered[RequestContext], ...] = ()
        self.exporters: tuple[Registered[ClientTelemetryContext], ...] = ()
        self.took_ns = 0
        """Time that the plugins needed for the last push."""
        self.by_name: dict[str, PluginStats] = {}
        self.displaced: list[PluginStats] = []
        """Of the calls on threads: a counter with two writers would lose counts."""

    def register(self, name: str, provider: ClientTelemetry | ClientTelemetryExporterProvider) -> bool:
        """Add the exporter of a provider if it can have one, otherwise its receiver (KIP-1217).

        Returns:
            Whether there was anything; None from the provider keeps it out.

        Raises:
            ConfigError: The object is no exporter or receiver.
        """
        path = f"plugins.{name}"
        if isinstance(provider, ClientTelemetryExporterProvider):
            exporter = provider.client_telemetry_exporter()
            if exporter is not None:
                check_interface(exporter, (ClientTelemetryExporter,), path, "client_telemetry_exporter")
                self.add_exporter(name, exporter)
            return exporter is not None
        receiver = provider.client_receiver()
        if receiver is not None:
            check_interface(receiver, (ClientTelemetryReceiver,), path, "client_receiver")
            self.add_receiver(name, receiver)
        return receiver is not None

    def add_receiver(self, name: str, receiver: ClientTelemetryReceiver) -> None:
        """Add a receiver after the others, from the next push on."""
        self.receivers += (Registered(receiver, receiver.export_metrics, self.record(name)),)

    def add_exporter(self, name: str, exporter: ClientTelemetryExporter) -> None:
        """Add an exporter after the others and after all receivers, from the next push on."""
        self.exporters += (Registered(exporter, exporter.export_metrics, self.record(name)),)

    def remove(self, plugin: ClientTelemetryReceiver | ClientTelemetryExporter) -> None:
        """Remove a plugin; harmless if it is unknown. Its counters stay."""
        self.receivers = tuple(entry for entry in self.receivers if entry.plugin is not plugin)
        self.exporters = tuple(entry for entry in self.exporters if entry.plugin is not plugin)

    @property
    def is_empty(self) -> bool:
        """Whether there is no receiver and no exporter."""
        return not self.receivers and not self.exporters

    def record(self, name: str) -> PluginStats:
        """The counters of the plugin ``name``, created if it is new."""
        return self.by_name.setdefault(name, PluginStats(name))

    def stats(self) -> list[PluginStats]:
        """The counters of each plugin that was ever registered, in that order, then those of the threads."""
        return [*self.by_name.values(), *self.displaced]

    def export(
        self,
        context: RequestContext,
        payload: ClientTelemetryPayload,
        push_interval_ms: int,
        stop_at_failure: bool = False,
    ) -> bool:
        """Give one push to all plugins.

        Args:
            context: The request that brought it.
            payload: The same object for everybody.
            push_interval_ms: For the exporters.
            stop_at_failure: The first plugin that raises is the last one called, as in Kafka.

        Returns:
            Whether all plugins took it.
        """
        self.took_ns = 0
        whole = not self.receivers or self.call(self.receivers, context, payload, stop_at_failure)
        if self.exporters and (whole or not stop_at_failure):
            wider = ClientTelemetryContext(push_interval_ms, context)
            whole = self.call(self.exporters, wider, payload, stop_at_failure) and whole
        return whole

    def call(
        self,
        entries: tuple[Registered[Context], ...],
        context: Context,
        payload: ClientTelemetryPayload,
        stop_at_failure: bool,
    ) -> bool:
        """Call plugins in turn. Returns whether none of them raised."""
        whole = True
        started_ns = self.monotonic_ns()
        for entry in entries:
            stats = entry.stats
            try:
                entry.export(context, payload)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - Kafka catches Throwable; sys.exit() is no way out
                whole = False
                stats.fail(error, self.clock.monotonic_ms())
            else:
                if not entry.displaced:
                    stats.exported += 1
            ended_ns = self.monotonic_ns()
            took_ns = ended_ns - started_ns
            self.took_ns += took_ns
            if took_ns > self.slow_ns:
                self.blocked(entry, took_ns)
            started_ns = ended_ns
            if stop_at_failure and not whole:
                break
        return whole

    def displace_all(self) -> None:
        """Move the plugins that were added up to now to threads of their own."""
        if self.displace is not None:
            self.receivers = tuple(self.moved(each, self.displace) for each in self.receivers)
            self.exporters = tuple(self.moved(each, self.displace) for each in self.exporters)

    def moved(self, entry: Registered[Context], displace: Displace) -> Registered[Context]:
        """Give a plugin a thread of its own."""
        if entry.displaced:
            return entry
        self.displaced.append(PluginStats(entry.stats.name))
        export = displace(entry.export, self.displaced[-1])
        return Registered(entry.plugin, export, entry.stats, displaced=True)

    def blocked(self, entry: Registered[Any], took_ns: int) -> None:
        """Count a slow call, and move the plugin off the event loop if there were too many."""
        stats = entry.stats
        stats.block(HOOK, took_ns, self.clock.monotonic_ms(), entry.export)
        if self.displace is None or entry.displaced or not 0 < self.limit_ns <= stats.blocked_ns:
            return
        moved = self.moved(entry, self.displace)
        self.receivers = tuple(moved if each is entry else each for each in self.receivers)
        self.exporters = tuple(moved if each is entry else each for each in self.exporters)
        log.warning(
            "plugin %s blocks the event loop too often: its %s runs on a thread of its own from now on",
            stats.name,
            HOOK,
            extra={"plugin": stats.name, "slow": stats.slow},
        )
