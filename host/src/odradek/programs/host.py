"""One host: the rooms put together, started and stopped.

Order of a start: configuration (before), plugins, data directory, metadata and logs, subscriptions,
forwarders, listeners. Errors are found before the first connection. A stop runs in the reverse order and
loses nothing that was acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from odradek.broker.broker import Broker, Endpoint
from odradek.broker.composition import compose_broker
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import load_handlers
from odradek.estimate.on_demand import estimates_of
from odradek.gateway.observation.settings import Observe
from odradek.group.offset_expiration import OffsetExpiration
from odradek.hosting.active_plugin import ActivePlugin, activate, quota_callback
from odradek.hosting.authorizers import GuardedAuthorizer, chosen_authorizer
from odradek.hosting.cluster_topic import cluster_topic
from odradek.hosting.companions import Companions
from odradek.hosting.forwarder_reports import problem_of, runner_rows
from odradek.hosting.forwarders import make_runners, make_spool, sink_of, start_runners
from odradek.hosting.offered_objects import close_offers, register
from odradek.hosting.plugin_manager import HostPluginManager, load_plugins
from odradek.hosting.plugin_thread import PluginThreads
from odradek.hosting.principal_builders import built_principals
from odradek.hosting.sources import Sources
from odradek.log.producer_ids import ProducerIds
from odradek.meters.authentication_metrics import key_rows
from odradek.meters.certificate_metrics import certificate_rows
from odradek.meters.connection_metrics import connection_rows
from odradek.meters.memory_metrics import memory_rows
from odradek.meters.metrics import LOGS, listener_rows, plugin_rows, push_rows, request_rows, worker_rows
from odradek.meters.metrics_outlets import MetricsOutlets
from odradek.meters.metrics_settings import METRICS_LISTENER
from odradek.meters.quota_metrics import quota_rows
from odradek.meters.state_metrics import state_rows
from odradek.metrics.metric import MetricRow
from odradek.net.authentications import Authentications
from odradek.net.displacement import displace
from odradek.net.held_bytes import Memory
from odradek.net.host_lookup import look_up
from odradek.net.idle_connections import close_idle
from odradek.net.listener import Listener, ListenerAddress
from odradek.net.listener_kinds import listener_kind
from odradek.net.turns import Turns
from odradek.process.file_threads import FileThreads
from odradek.process.limits import descriptor_limit
from odradek.process.payload_workers import PayloadWorkers
from odradek.process.random_ids import random_session_id, random_uuid
from odradek.process.timer_driver import TimerDriver
from odradek.programs.certificates import Certificates
from odradek.programs.config import HostConfig
from odradek.programs.ended_leases import remove_ended
from odradek.programs.file_quotas import FileQuotas
from odradek.programs.file_subscriptions import FileSubscriptions
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.descriptors import divided
from odradek.quota.guarded_callback import GuardedCallback
from odradek.quota.quota_managers import QuotaManagers
from odradek.security.principals import BuiltPrincipals
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.upkeep.idle_sensors import forget_idle
from odradek.upkeep.log_upkeep import LogUpkeep
from odradek.upkeep.metadata_checkpoints import MetadataCheckpoints
from odradek.upkeep.storage import Storage
from odradek.waiting.clock import Clock, SystemClock, Timer
from odradek.waiting.deferred import offload_inline

if TYPE_CHECKING:
    from odradek.gateway.observation.observation import Observation
    from odradek.net.listener_kinds import ListenerKinds

log = logging.getLogger(__name__)

GUARDED = GuardedCallback | GuardedAuthorizer | BuiltPrincipals


class Host:
    """A host on the running event loop.

    Args:
        config: Its configuration.
        clock: The time; by default the system's.
        plugins: The plugins; by default those that are installed.
        recover_metadata: Rebuild a lost or damaged metadata file from the partitions.
        failed: Called with the reason when the host can do nothing any more; it should be stopped.
        listener_kinds: Decides what its listeners are.

    Raises:
        ConfigError: The data directory, a plugin or a subscription is not usable.
    """

    DESCRIPTORS_PER_CONNECTION: ClassVar[int] = 1

    def __init__(
        self,
        config: HostConfig,
        clock: Clock | None = None,
        plugins: HostPluginManager | None = None,
        *,
        recover_metadata: bool = False,
        failed: Callable[[str], None] = lambda _reason: None,
        listener_kinds: ListenerKinds = listener_kind,
    ) -> None:
        self.config = config
        self.failed = failed
        self.kinds = listener_kinds
        self.clock = clock or SystemClock()
        self.timer = Timer()
        self.plugin_manager = plugins or load_plugins()
        self.plugins: list[ActivePlugin] = activate(
            self.plugin_manager, config.plugins, config.requested_plugins
        )
        limits = ConnectionQuotas(
            self.clock,
            self.timer,
            config.quotas.client,
            config.connections,
            config.inter_broker_listener or "PLAINTEXT",
            look_up,
            divided(descriptor_limit(), config.descriptors, self.DESCRIPTORS_PER_CONNECTION),
        )
        self.authorizer = chosen_authorizer(
            config.authorizer, self.plugins, self.clock, config.telemetry.slow_ms
        )
        callback = quota_callback(self.plugins)
        self.quota_callback = callback and GuardedCallback(*callback, self.clock, config.telemetry.slow_ms)
        self.principals = built_principals(
            self.plugins, config.broker.name_max_length, self.clock, config.telemetry.slow_ms
        )
        quotas = QuotaManagers(
            config.quotas, self.clock, self.quota_callback, self.timer, limits.update_ip_rate
        )
        self.plugin_threads = PluginThreads(config.telemetry.thread_queue_max_bytes, self.clock)
        self.receivers = ClientMetricsReceiverPlugin(
            self.clock, config.telemetry.slow_ms, config.telemetry.slow_limit, self.plugin_threads.displace
        )
        self.enrichers = Enrichers(self.clock, config.telemetry.slow_ms)
        self.meters: list[Callable[[], Iterator[MetricRow]]] = []  # of parts that the host does not know
        register(self.plugins, self.receivers, self.enrichers)
        self.storage = Storage(
            config.data_dir,
            self.clock.now_ms(),
            config.log_dirs,
            quotas.alter_log_dirs,
            ProducerIds(config.producer_ids, self.clock),
            recover_metadata=recover_metadata,
            open_segments=limits.descriptors.segments,
        )
        try:
            self.connect(quotas, limits)
        except BaseException:
            self.storage.close()
            raise

    def connect(self, quotas: QuotaManagers, limits: ConnectionQuotas) -> None:
        """Connect the rooms to each other and to the stored files.

        Raises:
            ConfigError: A file is damaged, or cannot be read or written; a topic cannot be created.
        """
        config = self.config
        self.metadata, self.logs = self.storage.metadata, self.storage.logs
        self.logs.directory_failed = self.directory_failed
        processes = config.workers.processes
        self.workers = PayloadWorkers(processes, config.workers) if processes else None
        # Record batches have a process of their own, so that producers cannot hold up pushes.
        self.batch_workers = PayloadWorkers(1, config.workers) if processes else None
        self.offload = offload_inline if self.workers is None else self.workers.offload
        self.telemetry = ClientMetricsManager(
            config=config.telemetry,
            clock=self.clock,
            timer=self.timer,
            random_uuid=random_uuid,
            plugin=self.receivers,
            enrichers=self.enrichers,
            offload=self.offload,
        )
        self.file_subscriptions = FileSubscriptions(self.metadata, self.telemetry)
        self.broker = self.load_broker(quotas, limits)
        self.file_quotas = FileQuotas(self.metadata, self.broker.client_quotas)
        self.file_threads = FileThreads()
        self.checkpoints = MetadataCheckpoints(
            self.storage.metadata_path,
            self.storage.changes,
            self.timer,
            self.clock,
            self.file_threads.offload,
        )
        self.flush_threads = FileThreads(1)
        self.password_threads = FileThreads(1)
        self.request_threads = FileThreads(1)
        self.broker.steps.offload = self.request_threads.offload
        self.upkeep = LogUpkeep(
            self.logs,
            self.timer,
            self.clock,
            config.upkeep,
            self.file_threads.offload,
            self.flush_threads.offload,
        )
        self.dispatcher = Dispatcher(self.broker, load_handlers())
        self.spool = make_spool(
            config.spool, config.telemetry.opened_max_bytes, self.broker, self.file_threads.offload
        )
        self.forwarders = make_runners(self.plugins, self.spool, self.telemetry)
        self.cluster_topic = cluster_topic(config.spool, self.plugins, self.broker, self.meters)
        self.broker.sink = sink = self.cluster_topic or sink_of(self.spool, self.forwarders)
        self.broker.estimates = estimates_of(
            config.subscription_budgets, self.telemetry, self.clock, self.spool, self.offload
        )
        self.turns = Turns(self.clock, config.turns)
        for runner in (self.broker.steps, self.upkeep.runner, self.upkeep.flusher):
            runner.soon = self.turns.soon
        self.memory = Memory(config.memory, config.socket_request_max_bytes, self.clock, self.timer)
        self.authentications = Authentications(config, self.broker, self.password_threads, self.principals)
        self.certificates = Certificates(config, self.clock, self.timer, self.file_threads.offload)
        self.broker.certificates = self.certificates
        self.certificates.update(self.broker.config.certificate_texts())
        self.listener_kind = self.kinds(self.authentications, self.dispatcher, self.certificates.listeners)
        self.listeners = [self.make_listener(address) for address in config.listeners]
        limits.over_limit = partial(displace, limits, self.listeners)  # listeners need the limits
        limits.departing = self.turns.departures
        self.sources = Sources(self.plugins, self.telemetry, sink, self.clock)
        self.observation = self.observed()
        self.companions = Companions(self.plugins, self.clock)
        self.driver: TimerDriver | None = None
        self.trouble = partial(problem_of, self.forwarders)
        self.outlets = MetricsOutlets(self.metric_rows, self.not_ready, trouble=self.trouble)

    def observed(self) -> Observation | None:
        """The observation of the listeners' clients; None if it is off."""
        if self.config.observation.observe is Observe.NONE:
            return None
        from odradek.programs.observation import observe_listeners  # hosts without it start faster

        return observe_listeners(self)

    def load_broker(self, quotas: QuotaManagers, limits: ConnectionQuotas) -> Broker:
        """Make the broker from the stored files.

        Raises:
            ConfigError: A file is damaged, or cannot be read or written.
        """
        with self.storage.loading():
            return compose_broker(
                self.config,
                self.storage,
                clock=self.clock,
                timer=self.timer,
                telemetry=self.telemetry,
                quotas=quotas,
                connection_quotas=limits,
                random_uuid=random_uuid,
                random_session_id=random_session_id,
                offload=offload_inline if self.batch_workers is None else self.batch_workers.offload,
                authorizer=self.authorizer,
            )

    def directory_failed(self) -> None:
        """Give up if no log directory works: no partition is left, and a restart may find the disks again."""
        if not self.logs.online:
            self.failed("all log directories are offline; repair the disks, then restart")

    def make_listener(self, address: ListenerAddress) -> Listener:
        return self.listener_kind(address)(
            address,
            dispatcher=self.dispatcher,
            clock=self.clock,
            timer=self.timer,
            quotas=self.broker.connection_quotas,
            turns=self.turns,
            memory=self.memory,
            node_id=self.config.broker.node_id,
            max_request_bytes=self.config.socket_request_max_bytes,
            disconnected=self.telemetry.connection_closed,
            proxies=self.config.of_listener(self.config.proxies, address.name),
        )

    @property
    def addresses(self) -> list[str]:
        """The addresses of the listeners, with the ports that were bound."""
        return [str(replace(each.address, port=each.bound_port)) for each in self.listeners]

    def metric_rows(self) -> Iterator[MetricRow]:
        """Yield the current values of all metrics."""
        now_ms = self.clock.monotonic_ms()
        yield from self.telemetry.metric_rows()
        yield from listener_rows(self.listeners)
        yield from key_rows(self.authentications.key_sets.values(), now_ms)
        yield from memory_rows(self.memory.requests, self.memory.answers)
        yield from certificate_rows(self.certificates.listeners, self.clock.now_ms())
        yield from request_rows(self.dispatcher, self.broker)
        yield from worker_rows({"payload": self.workers, "batch": self.batch_workers})
        yield from LOGS.rows(self.logs)
        guarded = (self.quota_callback, self.authorizer, self.principals)
        asked = [each.stats for each in guarded if isinstance(each, GUARDED)]
        stats = [*self.receivers.stats(), *self.enrichers.stats(), *self.sources.stats(), *asked]
        yield from plugin_rows(stats, self.plugin_threads.waiting())
        refused = self.spool.writer.refused if self.spool else {}
        yield from push_rows(self.telemetry.accounts, self.telemetry.kept, refused)
        yield from runner_rows(self.forwarders)
        yield from quota_rows(self.broker.quotas, now_ms)
        yield from connection_rows(self.broker.connection_quotas, now_ms)
        yield from state_rows(
            self.broker.state_limits, self.broker.names, self.telemetry.subscriptions.skipped
        )
        yield from (row for meter in (self.sources.metric_rows, *self.meters) for row in meter())

    def not_ready(self) -> str | None:
        """Why load balancers should send no clients here; None if they should. Called on other threads."""
        return None if self.logs.online else "all log directories are offline"

    async def start(self) -> None:
        """Start everything, the listeners last.

        Raises:
            ConfigError: A listener's port is in use, or a subscription is invalid.
        """
        self.driver = TimerDriver(self.timer, self.clock)
        self.driver.start()
        with self.storage.loading():
            self.file_subscriptions.start(self.config.subscriptions)
            self.file_quotas.apply(self.config.client_quotas)
            self.broker.transactions.start()
        for limit in self.broker.state_limits:
            limit.warn_if_exceeded()
        if self.cluster_topic is not None:
            self.cluster_topic.start()
        start_runners(self.forwarders, self.spool)
        await self.authentications.start()
        for listener in self.listeners:
            await self.listen(listener)
        tls = self.certificates.listeners.get(METRICS_LISTENER)
        self.outlets.listen(self.config.metrics_listener, self.config.metrics_token, tls)
        self.outlets.push_to(self.config.metrics_push)
        close_idle(self.listeners, self.config.connections_max_idle_ms, self.clock, self.timer)
        forget_idle(self.broker.quotas, self.clock, self.timer)
        forget_idle(self.broker.connection_quotas, self.clock, self.timer)
        remove_ended(self.metadata, self.telemetry, self.clock, self.timer)
        self.upkeep.start()
        self.certificates.start()
        OffsetExpiration(self.broker.groups).start()
        self.checkpoints.start()
        self.sources.start()
        nearby = [(each.address, each.address.nearby(each.bound_port)) for each in self.listeners]
        self.companions.start([(address.security_protocol, text) for address, text in nearby])

    async def listen(self, listener: Listener) -> None:
        """Open one listener and set its advertised address."""
        address = listener.address
        await listener.start()
        here = Endpoint(address.host or "localhost", listener.bound_port)
        self.broker.endpoints[address.name] = self.config.advertised.get(address.name, here)

    async def stop_plugins(self, timeout_s: float) -> None:
        """Let forwarders and plugins with threads take their queued pushes, in parallel, within the time."""
        if self.observation is not None:
            self.observation.stop()
        stops = [self.plugin_threads.stop, *(runner.stop for runner in self.forwarders)]
        flushes = [self.cluster_topic.stop(timeout_s)] if self.cluster_topic is not None else []
        await asyncio.gather(*flushes, *(asyncio.to_thread(stop, timeout_s) for stop in stops))

    def close_storage(self) -> None:
        """Close all files. The next start recovers what is not saved within ``shutdown.timeout.ms``."""
        deadline_ms = self.clock.monotonic_ms() + self.config.shutdown_timeout_ms
        self.storage.close(lambda: self.clock.monotonic_ms() < deadline_ms)

    async def stop(self) -> None:
        """Answer waiting requests, flush the forwarders within ``shutdown.timeout.ms``, close everything."""
        self.outlets.draining = True
        timeout_s = self.config.shutdown_timeout_ms / 1000
        async with AsyncExitStack() as closing:  # runs from the bottom up, and continues if one raises
            closing.callback(self.close_storage)
            for plugin in self.plugins:
                closing.callback(close_offers, plugin, timeout_s)
            closing.callback(self.broker.transactions.close)
            closing.callback(self.telemetry.close)
            for each in (self.flush_threads, self.password_threads, self.request_threads, self.file_threads):
                closing.push_async_callback(each.close)
            if self.driver is not None:
                closing.callback(self.driver.stop)
            closing.push_async_callback(self.authentications.close)
            closing.callback(self.upkeep.stop)
            closing.callback(self.broker.steps.stop)
            closing.push_async_callback(self.outlets.close, timeout_s)
            closing.push_async_callback(self.stop_plugins, timeout_s)
            for workers in (self.workers, self.batch_workers):
                if workers is not None:
                    closing.push_async_callback(workers.close)
            await self.sources.stop(timeout_s)  # first: one may read this host
            closes = [listener.close(timeout_s) for listener in self.listeners if listener.acceptor]
            await asyncio.gather(self.companions.stop(timeout_s), *closes)
