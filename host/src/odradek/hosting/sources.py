"""The sources of all plugins of one host."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.telemetry_spool import TelemetrySpool
from odradek.delivery.log_cursor import LogCursor
from odradek.hosting.active_plugin import ActivePlugin
from odradek.hosting.cluster_topic import ClusterTopic
from odradek.hosting.forwarders import MemorySink
from odradek.hosting.offers import SOURCE
from odradek.hosting.source_runner import SourceRunner
from odradek.meters.metrics import source_rows
from odradek.metrics.metric import MetricRow
from odradek.plugin.plugin_stats import PluginStats
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.recent_origins import RecentOrigins
from odradek.telemetry.record_source import Keep, RecordSource
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.errors import WireError

if TYPE_CHECKING:
    from odradek.telemetry.client_metrics_manager import ClientMetricsManager

log = logging.getLogger(__name__)

TAIL_RECORDS: Final = 2_000
"""Records at the end of each partition that a start looks at: a killed host may have stored the last ones
without telling their place of origin."""


class Sources:
    """Runs the sources.

    Args:
        plugins: All plugins of the host.
        manager: Labels records, and gives them to receivers.
        sink: Stores records, or gives them to forwarders; None if only receivers take them.
        clock: The time.
    """

    def __init__(
        self,
        plugins: Sequence[ActivePlugin],
        manager: ClientMetricsManager,
        sink: TelemetrySpool | MemorySink | ClusterTopic | None,
        clock: Clock,
    ) -> None:
        self.spool = spool = sink if isinstance(sink, TelemetrySpool) else None
        self.recent = RecentOrigins() if spool is None else RecentOrigins(lambda: spool.topic_id)
        self.keep: Keep = accept if sink is None else sink.take_record
        """Stores a record that no client pushed to this host."""
        self.runners = [
            SourceRunner(source, RecordSource(plugin.name, manager, self.keep, recent=self.recent), clock)
            for plugin in plugins
            for source in plugin.offered(SOURCE)
        ]

    def start(self) -> None:
        """Start all, when the host accepts connections."""
        if not self.runners:
            return
        try:
            self.remember_tail()
        except (ApiError, WireError) as error:
            problem = "the end of the log cannot be read; sources may repeat their last records"
            log.warning(problem, extra={"problem": str(error)})
        for runner in self.runners:
            runner.start()

    def remember_tail(self) -> None:
        """Remember the origins at the end of the log.

        Raises:
            ApiError, WireError: The log cannot be read.
        """
        if self.spool is None:
            return
        ends = self.spool.ends()
        cursor = LogCursor({index: max(end - TAIL_RECORDS, 0) for index, end in ends.items()})
        while unread := cursor.unread(ends):
            for chunk in self.spool.read(cursor.expected):
                for record in cursor.take(chunk):
                    self.recent.add(record)
            if cursor.unread(ends) == unread:
                return

    async def stop(self, timeout_s: float) -> None:
        """Stop all at the same time."""
        stops: list[Callable[[float], None]] = [runner.stop for runner in self.runners]
        await asyncio.gather(*(asyncio.to_thread(stop, timeout_s) for stop in stops))

    def stats(self) -> list[PluginStats]:
        """The failures of each source."""
        return [runner.stats for runner in self.runners]

    def metric_rows(self) -> Iterator[MetricRow]:
        """The accounts and the lag of each source."""
        for runner in self.runners:
            yield from source_rows(runner.entrance, runner.lag())


def accept(_record: TelemetryRecord) -> bool:
    """The outcome of storing a record if only receivers take records."""
    return True
