"""Forwarders, exporters and receivers beside a topic of a cluster: the parts of a host that read its log.

Each forwarder is a member of a group of its own, so that a destination that is down does not hold up the
others. Receivers and exporters together are one forwarder.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from odradek.client.shared_topic import SharedTopic
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.delivery.spooled_record import RecordFormat
from odradek.hosting.active_plugin import ActivePlugin
from odradek.hosting.forwarder_reports import runner_rows, running_forwarders
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.hosting.group_feed import GroupFeed
from odradek.hosting.listening import listening
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.hosting.receiver_forwarder import RECEIVERS, ReceiverForwarder
from odradek.hosting.record_labels import RecordLabels
from odradek.metrics.metric import MetricRow, Metrics
from odradek.otlp.labeled_payload import MAX_FIELDS
from odradek.plugin.config import ConfigError
from odradek.plugin.protocols import Forwarder
from odradek.programs.config import HostConfig
from odradek.programs.plugins import Plugins
from odradek.programs.spine import Part, Spine
from odradek.telemetry.labeled_record import payload_limits
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.temporality import KeepsTotals, TotalsStore

log = logging.getLogger(__name__)

WATCH_S: Final = 0.5
NOTHING_TO_RUN: Final = (
    "no plugin has a forwarder, receiver or exporter; configure one, or name it with --plugin"
)
LEAVE_SHARE: Final = 0.25
"""Share of the stop time for leaving the groups, after the forwarders have stopped."""


class Forward:
    """The forwarders of one process. Make it on the running event loop.

    Args:
        config: The configuration.
        group: The name that the groups begin with.
        open_log: Makes a forwarder's view of the topic, given its group.
        open_totals: Makes the store of a forwarder's totals, given its group and the name of the topic for
            them; None for the default.
        plugins: The plugins; by default those that are installed.
        record_format: The format of the topic's records.

    Raises:
        ConfigError: A plugin or its table is not usable, or there is nothing to run.
    """

    def __init__(
        self,
        config: HostConfig,
        group: str,
        open_log: Callable[[str], SharedTopic],
        open_totals: Callable[[str, str | None], TotalsStore],
        plugins: HostPluginManager | None = None,
        record_format: RecordFormat | None = None,
    ) -> None:
        self.config = config
        self.open_log, self.open_totals = open_log, open_totals
        self.record_format = record_format
        self.spine = spine = Spine(replace(config, listeners=()))
        self.outlets = spine.outlets
        self.plugins = Plugins(spine, plugins, on_loop=False)
        self.limits = payload_limits(config.telemetry, config.telemetry.opened_max_bytes, MAX_FIELDS)
        self.loop = asyncio.get_running_loop()
        self.feeds: list[GroupFeed] = []
        self.runners = spine.forwarders
        for name, forwarder, settings in forwarders_of(self.plugins.all, self.plugins.receivers):
            self.runners.append(self.runner(name, forwarder, settings, f"{group}.{name}"))
        if not self.runners:
            raise ConfigError("plugins", NOTHING_TO_RUN)
        self.ready = False
        spine.parts += [
            self.plugins.part,
            *spine.base,
            Part(stop=self.leave_groups, waits_for=lambda: f"groups to leave: {', '.join(self.groups)}"),
            Part(
                self.start_runners,
                self.stop_runners,
                self.metric_rows,
                self.not_ready,
                waits_for=lambda: running_forwarders(self.runners),
            ),
        ]

    def runner(
        self, name: str, forwarder: Forwarder, settings: ForwarderSettings, group_id: str
    ) -> ForwarderRunner:
        """One runner, not started."""
        shared = self.open_log(group_id)
        keep = None
        if isinstance(forwarder, KeepsTotals) and forwarder.settings.file is None:
            forwarder.store_in(self.open_totals(group_id, forwarder.settings.topic))
            keep = forwarder.keep
        feed = GroupFeed(name, group_id, shared, settings.malformed_max_records, self.record_format, keep)
        self.feeds.append(feed)
        labels = RecordLabels(self.loop, self.plugins.enrichers, self.limits)
        return ForwarderRunner(name, forwarder, settings, feed=feed, labels=labels)

    @property
    def groups(self) -> Sequence[str]:
        """The groups of the forwarders."""
        return [feed.group_id for feed in self.feeds]

    async def start(self, stop: asyncio.Event) -> None:
        """Join the groups, and wait until each has assigned its partitions, or until the stop.

        Raises:
            ApiError: A group cannot be joined.
            ConfigError: The port of the metrics cannot be bound.
        """
        await self.spine.start()
        stopped = asyncio.ensure_future(stop.wait())
        joined = asyncio.ensure_future(self.joined())
        await asyncio.wait([stopped, joined], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if joined.done():
            await joined
            self.ready = True
        else:
            joined.cancel()

    def start_runners(self) -> None:
        for runner in self.runners:
            runner.start()

    async def joined(self) -> None:
        """Wait until all groups have assigned their partitions, and forwarders listen that have addresses."""
        opened = listening(*((each.forwarder, each.calls.opened) for each in self.runners))
        await asyncio.gather(opened, *(asyncio.wrap_future(feed.joined) for feed in self.feeds))

    async def watch(self, stop: asyncio.Event) -> str | None:
        """Wait for the stop; return the reason if a forwarder ended before."""
        while not stop.is_set():
            for runner in self.runners:
                if runner.thread is not None and not runner.thread.is_alive():
                    return f"forwarder {runner.name} ended: {runner.stats().last_error}"
            try:
                await asyncio.wait_for(stop.wait(), WATCH_S)
            except TimeoutError:
                continue
        return None

    def not_ready(self) -> str | None:
        """Why this process does not forward; None if it does. Called on other threads."""
        if not self.ready:
            return self.outlets.trouble() or "joining the groups"
        return next((f"{feed.group_id}: {feed.problem}" for feed in self.feeds if feed.problem), None)

    def metric_rows(self) -> Iterator[MetricRow]:
        """The current values of the metrics of the forwarders."""
        for runner, feed in zip(self.runners, self.feeds, strict=True):
            yield from runner_rows([runner])
            yield from PARTITIONS.rows(runner, feed, plugin=runner.name)

    async def stop(self) -> None:
        """Deliver the current batches within ``shutdown.timeout.ms``, commit, and leave the groups."""
        await self.spine.stop()

    async def stop_runners(self) -> None:
        await self.in_parallel([runner.stop for runner in self.runners], 1 - LEAVE_SHARE)

    async def leave_groups(self) -> None:
        await self.in_parallel([feed.end for feed in self.feeds], LEAVE_SHARE)

    async def in_parallel(self, stops: Sequence[Callable[[float], None]], share: float) -> None:
        """Stop parts, each on a thread, within a share of the time."""
        await asyncio.gather(*(asyncio.to_thread(stop, self.spine.stop_s * share) for stop in stops))


def forwarders_of(
    plugins: Sequence[ActivePlugin], receivers: ClientMetricsReceiverPlugin
) -> Iterator[tuple[str, Forwarder, ForwarderSettings]]:
    """Name, forwarder and settings of each. All receivers together are one of them."""
    for plugin in plugins:
        settings = plugin.forwarder_settings or ForwarderSettings()
        for name, forwarder in plugin.forwarders.items():
            yield name, forwarder, settings
    if not receivers.is_empty:
        yield RECEIVERS, ReceiverForwarder(receivers), ForwarderSettings()


def queued_by_partition(runner: ForwarderRunner) -> Counter[int]:
    """The records that wait or are being delivered. Their sum is that of the forwarder's accounts."""
    feed = runner.feed
    assert feed is not None
    with runner.lock:
        ends, cursor = feed.source.ends(), feed.cursor
        found = Counter({index: ends.get(index, at) - at for index, at in cursor.expected.items()})
        found.update(record.partition for record in runner.unsettled())
    return found


PARTITIONS = Metrics[ForwarderRunner, GroupFeed]("odradek.forwarder", "plugin")
PARTITIONS.gauge(
    "partitions", "{partition}", "Partitions assigned to this process", lambda _, it: len(it.owned)
)
PARTITIONS.gauge(
    "partition.queued",
    "{push}",
    "Pushes of a partition that are waiting or being delivered",
    lambda it, _: queued_by_partition(it),
    by="partition",
)
