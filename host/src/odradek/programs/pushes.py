"""The pushes of a host or a gateway: what clients are asked for, where pushes are kept, and who gets them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping

from odradek.broker.answering import PushHandling
from odradek.broker.telemetry_spool import TelemetrySpool
from odradek.estimate.on_demand import estimates_of
from odradek.gateway.cluster_subscriptions import ClusterSubscriptions
from odradek.gateway.dropping_sink import DroppingSink
from odradek.gateway.telemetry_settings import SpoolFull, SubscriptionSource
from odradek.group.group_offsets import GroupOffsets
from odradek.hosting.cluster_topic import ClusterTopic, cluster_topic
from odradek.hosting.forwarder_reports import runner_rows, running_forwarders
from odradek.hosting.forwarders import MemorySink, make_runners, make_spool, start_runners
from odradek.hosting.listening import listening
from odradek.hosting.sources import Sources
from odradek.meters.metrics import push_rows, source_rows, worker_rows
from odradek.metrics.metric import MetricRow
from odradek.process.payload_workers import PayloadWorkers
from odradek.process.random_ids import random_uuid
from odradek.programs.ended_leases import remove_ended
from odradek.programs.file_subscriptions import FileSubscriptions
from odradek.programs.followed_subscriptions import OF_CLUSTER, FollowedSubscriptions
from odradek.programs.ground import Ground
from odradek.programs.plugins import Plugins
from odradek.programs.spine import Part, Spine
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.goodbyes import Goodbyes, Place
from odradek.telemetry.incidents import SOURCE_NAME, Incidents
from odradek.telemetry.record_source import RecordSource
from odradek.waiting.deferred import offload_inline


class Pushes:
    """The pushes of a host or a gateway.

    Args:
        spine: Of the program.
        plugins: Its plugins.
        ground: Has the topic of pushes.
        offsets: Of the forwarders.
        origin: The name of the program: what two of them see of a client is told apart by it.
        source: Which subscriptions are in force, the cluster's or the file's; None without a cluster.
        members: The live members of groups, as far as the program knows them.
        spool_full: What becomes of pushes that find no room.
        followed_cluster: Has the CLIENT_METRICS resources in force; None if this program has them.
        runs_sources: Whether the sources of plugins run here.

    Raises:
        ConfigError: A file is damaged, a topic cannot be created, or a forwarder or writer cannot be used.
    """

    def __init__(
        self,
        spine: Spine,
        plugins: Plugins,
        ground: Ground,
        offsets: GroupOffsets,
        *,
        origin: str,
        source: SubscriptionSource | None = None,
        members: Callable[[], Mapping[Place, int]] = dict,
        spool_full: SpoolFull = SpoolFull.THROTTLE,
        followed_cluster: str | None = None,
        runs_sources: bool = True,
    ) -> None:
        config, clock, timer = spine.config, spine.clock, spine.timer
        self.spine, self.plugins, self.ground = spine, plugins, ground
        processes = config.workers.processes
        self.workers = PayloadWorkers(processes, config.workers) if processes else None
        self.offload = offload_inline if self.workers is None else self.workers.offload
        self.manager = manager = ClientMetricsManager(
            config=config.telemetry,
            clock=clock,
            timer=timer,
            random_uuid=random_uuid,
            plugin=plugins.receivers,
            enrichers=plugins.enrichers,
            offload=self.offload,
            goodbyes=Goodbyes(
                lambda goodbye: self.goodbyes.take(goodbye),
                members,
                clock,
                timer,
                lambda lost, why: self.incidents.lost(lost, why),
            ),
        )
        self.followed: FollowedSubscriptions | None = None
        """None without a cluster."""
        if source is None:
            self.file_subscriptions = FileSubscriptions(ground.metadata, manager, config.subscriptions)
        else:
            with ground.storage.loading():
                known = None if source is SubscriptionSource.FILE else ground.metadata.value(OF_CLUSTER)
            of_cluster = None if known is None else json.loads(known)
            both = ClusterSubscriptions(source, manager.subscriptions, clock, of_cluster)
            self.file_subscriptions = FileSubscriptions(
                ground.metadata, manager, config.subscriptions, both.combined, followed_cluster is not None
            )
            self.followed = FollowedSubscriptions(both, self.file_subscriptions, ground.metadata, clock)
        self.spool = make_spool(
            config.spool,
            config.telemetry.opened_max_bytes,
            ground.common.topics,
            offsets,
            clock,
            timer,
            spine.file_threads.offload,
        )
        self.forwarders = spine.forwarders
        self.forwarders += make_runners(plugins.all, self.spool, manager, config.data_dir)
        self.cluster_topic = cluster_topic(config.spool, plugins.all, clock, timer)
        kept: ClusterTopic | TelemetrySpool | MemorySink | None = self.cluster_topic or self.spool
        if kept is None and self.forwarders:
            kept = MemorySink(self.forwarders)
        self.sources = Sources(plugins.all if runs_sources else (), manager, kept, clock)
        self.goodbyes = RecordSource("goodbyes", manager, self.sources.keep)
        plugins.stats += self.sources.stats()
        self.dropping = DroppingSink(kept) if kept and spool_full is SpoolFull.DROP else None
        estimates = estimates_of(config.subscription_budgets, manager, clock, self.spool, self.offload)
        self.origin = origin
        self.incidents = Incidents(
            RecordSource(SOURCE_NAME, manager, self.sources.keep),
            manager.goodbyes,
            clock,
            timer,
            origin,
            config.telemetry.incidents,
        )
        self.handling = PushHandling(
            manager, self.dropping or kept, estimates, followed_cluster, self.incidents
        )
        if not self.takes_records:
            self.incidents.most = 0
        ground.common.audit.incidents = self.incidents
        self.subscriptions = Part(self.load, manager.close, self.metric_rows)
        self.telling = Part(stop=self.incidents.stop, metric_rows=self.incidents.metric_rows)
        self.delivery = Part(
            self.start_forwarders, self.stop_forwarders, waits_for=lambda: running_forwarders(self.forwarders)
        )
        self.opening = Part(stop=self.close_workers)
        self.bringing = Part(self.bring, self.stop_sources, waits_for=lambda: "sources")

    @property
    def takes_records(self) -> bool:
        """Whether anything takes records that no client pushed."""
        return self.handling.sink is not None or not self.plugins.receivers.is_empty

    def load(self) -> None:
        """Put the subscriptions in force.

        Raises:
            ConfigError: A subscription of the file is invalid, or the metadata file cannot be used.
        """
        with self.ground.storage.loading():
            self.file_subscriptions.start(self.spine.config.subscriptions)
        remove_ended(self.ground.metadata, self.manager, self.spine.clock, self.spine.timer)

    def start_forwarders(self) -> None:
        """Start what takes pushes away.

        Raises:
            ConfigError: Offsets cannot be stored, or a plugin does not start.
        """
        if self.cluster_topic is not None:
            self.cluster_topic.start()
        start_runners(self.forwarders, self.spool)

    async def stop_forwarders(self) -> None:
        """Let forwarders and plugins with threads take their queued pushes, in parallel, within the time."""
        if self.spool is not None:
            self.spool.writer.commit()  # the last records of observed clients, for whose answer nobody waits
        timeout_s = self.spine.stop_s
        stops = [self.plugins.threads.stop, *(runner.stop for runner in self.forwarders)]
        flushes = [self.cluster_topic.stop(timeout_s)] if self.cluster_topic is not None else []
        await asyncio.gather(*flushes, *(asyncio.to_thread(stop, timeout_s) for stop in stops))

    async def close_workers(self) -> None:
        if self.workers is not None:
            await self.workers.close()

    async def bring(self) -> None:
        """Start the sources, and wait until every plugin listens that has an address."""
        self.sources.start()
        forwarders = [(each.forwarder, each.calls.opened) for each in self.forwarders]
        await listening(*forwarders, *((each.source, each.opened) for each in self.sources.runners))

    async def stop_sources(self) -> None:
        await self.sources.stop(self.spine.stop_s)

    def metric_rows(self) -> Iterator[MetricRow]:
        """Pushes and subscriptions, and the accounts of those who get the pushes."""
        yield from self.manager.metric_rows()
        refused = self.spool.writer.refused if self.spool else {}
        yield from push_rows(self.manager.accounts, self.manager.kept, refused)
        yield from worker_rows({"payload": self.workers})
        yield from runner_rows(self.forwarders)
        yield from source_rows(self.goodbyes)
        yield from source_rows(self.incidents.source)
        for each in (self.sources, self.cluster_topic, self.followed, self.dropping):
            if each is not None:
                yield from each.metric_rows()
