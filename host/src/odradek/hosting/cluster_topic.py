"""The telemetry topic on a cluster: ``telemetry.durability = "kafka"``."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from odradek.broker.spool_settings import Durability, SpoolSettings
from odradek.delivery.cluster_writer import ClusterWriter
from odradek.hosting.active_plugin import ActivePlugin, only_offer
from odradek.hosting.offers import TOPIC_WRITER
from odradek.meters.cluster_metrics import cluster_rows
from odradek.metrics.metric import MetricRow
from odradek.plugin.config import ConfigError
from odradek.plugin.protocols import TelemetryRecord
from odradek.plugin.topic_writer import NotWritten, TopicWriter
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred

log = logging.getLogger(__name__)

KEY: Final = "telemetry.durability"
SHARE_OF_PLUGIN: Final = 0.8
"""The plugin gives a record up before the host does, so that none is sent after its push was refused."""


def chosen_writer(settings: SpoolSettings, plugins: Sequence[ActivePlugin]) -> TopicWriter | None:
    """The writer of the plugin that takes accepted pushes; None if they stay in the host.

    Raises:
        ConfigError: There is none, or no use for it; or a forwarder would get no pushes.
    """
    offer = only_offer(plugins, TOPIC_WRITER, "write the telemetry topic")
    if settings.durability is not Durability.KAFKA:
        if offer is not None:
            problem = f"the table names a cluster to write to, but {KEY} is {settings.durability}, not kafka"
            raise ConfigError(f"plugins.{offer[0]}", problem)
        return None
    if offer is None:
        if any(plugin.name == "kafka" for plugin in plugins):
            problem = 'set plugins.kafka "telemetry.bootstrap.servers", the brokers of the cluster'
        else:
            problem = "odradek-kafka writes to the cluster; install the extra odradek[kafka]"
        raise ConfigError(KEY, f"kafka needs a plugin that writes to a cluster: {problem}")
    forwarders = [name for plugin in plugins for name in plugin.forwarders]
    if forwarders:
        raise ConfigError(
            f"plugins.{forwarders[0].partition('.')[0]}",
            f"forwarders run beside the topic, not in this host, if {KEY} is kafka: start `odradek forward` "
            "with this table, and remove the table here",
        )
    return offer[1]


def cluster_topic(
    settings: SpoolSettings, plugins: Sequence[ActivePlugin], clock: Clock, timer: Timer
) -> ClusterTopic | None:
    """The telemetry topic on a cluster, not started; None if it is in the host.

    Args:
        settings: Where pushes are kept.
        plugins: All plugins of the host.
        clock: The time.
        timer: Ends waits for acknowledgments.

    Raises:
        ConfigError: See `chosen_writer`.
    """
    plugin = chosen_writer(settings, plugins)
    return None if plugin is None else ClusterTopic(settings, plugin, clock, timer)


class ClusterTopic:
    """Gives pushes to a plugin that writes them to a cluster; the `TelemetrySink` of pushes.

    The plugin's reports come from other threads; the loop takes all that have come in one call.
    """

    def __init__(self, settings: SpoolSettings, plugin: TopicWriter, clock: Clock, timer: Timer) -> None:
        self.settings = settings
        self.plugin = plugin
        self.writer = ClusterWriter(
            clock=clock,
            timer=timer,
            write=plugin.write,
            max_bytes=settings.buffer_max_bytes,
            max_records=settings.buffer_max_records,
            timeout_ms=settings.acknowledge_timeout_ms,
        )
        self.reports: deque[tuple[int, NotWritten | None]] = deque()
        self.is_called = False
        """The loop is about to take the reports."""
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Start the plugin, on the loop.

        Raises:
            ConfigError: It fails.
        """
        self.loop = asyncio.get_running_loop()
        timeout_ms = int(self.settings.acknowledge_timeout_ms * SHARE_OF_PLUGIN)
        try:
            self.plugin.start(self.settings.topic_name, timeout_ms, self.report)
        except ConfigError:
            raise
        except Exception as error:
            log.exception("the writer of the telemetry topic does not start")
            raise ConfigError(KEY, f"the plugin's writer does not start: {error!r}") from error

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        """Send a push; the outcome follows when the cluster has answered."""
        return self.writer.append(push.record())

    def take_record(self, record: TelemetryRecord) -> bool | Deferred[bool]:
        """`take` for a record that no client pushed to this host."""
        return self.writer.append(record)

    def report(self, number: int, problem: NotWritten | None) -> None:
        """Take a report, on any thread."""
        self.reports.append((number, problem))
        if not self.is_called and self.loop is not None:
            self.is_called = True
            try:
                self.loop.call_soon_threadsafe(self.take_reports)
            except RuntimeError:
                log.debug("a report came after the event loop ended")

    def take_reports(self) -> None:
        """Settle the records whose reports have come."""
        self.is_called = False  # first: a report that comes now calls again
        while self.reports:
            self.writer.settle(*self.reports.popleft())

    async def stop(self, timeout_s: float) -> None:
        """Wait for the records in flight; refuse those that are not acknowledged in time."""
        if self.loop is None:
            return
        try:
            await asyncio.to_thread(self.plugin.flush, timeout_s)
        except Exception:
            log.exception("the writer of the telemetry topic cannot be flushed")
        self.take_reports()
        if self.writer.waiting:
            log.warning(
                "the cluster has not acknowledged all pushes", extra={"refused": len(self.writer.waiting)}
            )
        self.writer.close()

    def metric_rows(self) -> Iterator[MetricRow]:
        """The records in flight and their outcomes."""
        yield from cluster_rows(self.writer)
