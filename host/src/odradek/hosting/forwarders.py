"""The forwarders of a host, fed from the log or, with ``telemetry.durability=memory``, from memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from odradek.broker.spool_settings import Durability, SpoolSettings
from odradek.broker.telemetry_spool import TelemetrySpool
from odradek.broker.topic_changes import ChangeableTopics
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.group.group_offsets import GroupOffsets
from odradek.hosting.active_plugin import ActivePlugin
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.hosting.log_feed import LogFeed
from odradek.hosting.record_labels import RecordLabels
from odradek.plugin.config import ConfigError
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.temporality import KeepsTotals
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Offload

log = logging.getLogger(__name__)

TOTALS_FILE: Final = "{}.totals.db"
"""The file of a forwarder's totals in the data directory."""


@dataclass(frozen=True, slots=True)
class MemorySink:
    """Gives each push to the forwarders at once; a forwarder with a full queue drops and counts it."""

    runners: Sequence[ForwarderRunner]

    def take(self, push: AcceptedPush) -> bool:
        """Always True: only the forwarder loses a push, not the client."""
        return self.take_record(push.record())

    def take_record(self, record: TelemetryRecord) -> bool:
        """`take` for a record that no client pushed to this host."""
        for runner in self.runners:
            runner.offer(record)
        return True


def make_spool(
    settings: SpoolSettings,
    opened_max_bytes: int,
    topics: ChangeableTopics,
    offsets: GroupOffsets,
    clock: Clock,
    timer: Timer,
    offload: Offload,
) -> TelemetrySpool | None:
    """The log for pushes; None if this host does not keep them.

    Raises:
        ConfigError: A topic cannot be created.
    """
    if settings.durability in (Durability.MEMORY, Durability.KAFKA):
        return None
    spool = TelemetrySpool(settings, opened_max_bytes, topics, offsets, clock, timer, offload)
    topics.listeners.append(spool.topics_changed)
    return spool


def make_runners(
    plugins: Sequence[ActivePlugin],
    spool: TelemetrySpool | None,
    telemetry: ClientMetricsManager,
    data_dir: Path,
) -> list[ForwarderRunner]:
    """One runner per forwarder, not started. On the host's loop.

    Args:
        plugins: Have the forwarders.
        spool: Feeds them; None if pushes are not kept.
        telemetry: Labels records.
        data_dir: Has the totals of forwarders that name no file for them.

    Raises:
        ConfigError: A forwarder keeps its totals in a topic.
    """
    runners = []
    loop = asyncio.get_running_loop()
    for plugin in plugins:
        settings = plugin.forwarder_settings or ForwarderSettings()
        check_totals(plugin)
        for name, forwarder in plugin.forwarders.items():
            if isinstance(forwarder, KeepsTotals) and forwarder.settings.file is None:
                file = data_dir / TOTALS_FILE.format(name)
                forwarder.settings = replace(forwarder.settings, file=file)
        for name, forwarder in plugin.forwarders.items():
            feed = feed_of(name, spool, settings)
            labels = RecordLabels(loop, telemetry.enrichers, telemetry.limits) if feed else None
            runners.append(ForwarderRunner(name, forwarder, settings, feed=feed, labels=labels))
    return runners


def check_totals(plugin: ActivePlugin) -> None:
    """Check that the totals of a host's forwarders are in files.

    Raises:
        ConfigError: A forwarder keeps its totals in a topic.
    """
    for forwarder in plugin.forwarders.values():
        if isinstance(forwarder, KeepsTotals) and forwarder.settings.topic is not None:
            problem = (
                "expected the path of a file for the totals, or nothing; totals.topic is for odradek forward"
            )
            raise ConfigError(forwarder.settings.file_key, problem)


def start_runners(runners: Sequence[ForwarderRunner], spool: TelemetrySpool | None) -> None:
    """Start forwarders. One whose totals are to be built again reads the log from its beginning.

    Raises:
        ConfigError: Offsets cannot be stored.
    """
    for runner in runners:
        forwarder = runner.forwarder
        if spool is not None and isinstance(forwarder, KeepsTotals) and forwarder.is_rebuilt():
            assert runner.feed is not None
            told = "totals of plugin %s are built again from the beginning of the log"
            log.warning(told, runner.name, extra={"plugin": runner.name})
            spool.rewind(runner.feed.group_id)
        runner.start()


def feed_of(name: str, spool: TelemetrySpool | None, settings: ForwarderSettings) -> LogFeed | None:
    """A forwarder's way through the log; None if pushes are not kept. On the host's loop."""
    if spool is None:
        return None
    feed = LogFeed(name, spool, settings.malformed_max_records)
    spool.readers.append(feed)
    return feed
