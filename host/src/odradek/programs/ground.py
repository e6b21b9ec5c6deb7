"""What a host and a gateway stand on: files, topics, limits of clients, and work that takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from odradek.broker.common import Common
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.hosting.active_plugin import quota_callback
from odradek.hosting.companions import Companions
from odradek.log.producer_ids import ProducerIds
from odradek.meters.connection_metrics import connection_rows
from odradek.meters.metrics import LOGS, listener_rows
from odradek.meters.quota_metrics import quota_rows
from odradek.metrics.metric import MetricRow
from odradek.net.displacement import displace
from odradek.net.held_bytes import Memory
from odradek.net.host_lookup import look_up
from odradek.net.idle_connections import close_idle
from odradek.net.listener import Listener, ListenerAddress
from odradek.net.turns import Turns
from odradek.process.limits import descriptor_limit
from odradek.process.random_ids import random_uuid
from odradek.programs.file_quotas import FileQuotas
from odradek.programs.plugins import Plugins
from odradek.programs.spine import Part, Spine
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.descriptors import divided
from odradek.quota.guarded_callback import GuardedCallback
from odradek.quota.quota_managers import QuotaManagers
from odradek.upkeep.background_work import BackgroundWork
from odradek.upkeep.idle_sensors import forget_idle
from odradek.upkeep.log_upkeep import LogUpkeep
from odradek.upkeep.metadata_checkpoints import MetadataCheckpoints
from odradek.upkeep.storage import Storage
from odradek.waiting.step_runner import StepRunner

OFFLINE = "all log directories are offline"


class Ground:
    """What a host and a gateway stand on.

    Args:
        spine: Of the program.
        plugins: One of them may decide which clients share a quota.
        failed: Called with the reason when the program can do nothing any more.
        sockets: The descriptors that each connection needs.
        opened: Called with each listener that has opened.
        runs_companions: Whether the companions of plugins run beside this program.
        recover_metadata: Rebuild a lost or damaged metadata file from the partitions.

    Raises:
        ConfigError: A file is damaged, or cannot be read or written. Nothing stays open.
    """

    def __init__(
        self,
        spine: Spine,
        plugins: Plugins,
        failed: Callable[[str], None],
        *,
        sockets: int = 1,
        opened: Callable[[Listener], None] = lambda _listener: None,
        runs_companions: bool = True,
        recover_metadata: bool = False,
    ) -> None:
        config, clock, timer = spine.config, spine.clock, spine.timer
        self.spine = spine
        self.failed = failed
        self.listeners: list[Listener] = []
        """Filled by the program, before they start."""
        self.turns = Turns(clock, config.turns)
        self.connection_quotas = ConnectionQuotas(
            clock,
            timer,
            config.quotas.client,
            config.connections,
            config.inter_broker_listener or "PLAINTEXT",
            look_up,
            divided(descriptor_limit(), config.descriptors, sockets),
            self.turns.departures,
            partial(displace, listeners=self.listeners),
        )
        offered = quota_callback(plugins.all)
        callback = offered and GuardedCallback(*offered, clock, config.telemetry.slow_ms)
        if callback is not None:
            plugins.stats.append(callback.stats)
        self.quotas = QuotaManagers(
            config.quotas, clock, callback, timer, self.connection_quotas.update_ip_rate
        )
        steps = StepRunner.of_requests(
            timer, clock, config.broker.request_turn_us, spine.new_threads().offload, self.turns.soon
        )
        offload = spine.file_threads.offload
        self.log_work = BackgroundWork(timer, clock, offload, spine.new_threads().offload, self.turns.soon)
        self.storage = Storage(
            config.data_dir,
            clock.now_ms(),
            config.log_dirs,
            self.quotas.alter_log_dirs,
            ProducerIds(config.producer_ids, clock),
            recover_metadata=recover_metadata,
            open_segments=self.connection_quotas.descriptors.segments,
            directory_failed=self.directory_failed,
            clock=clock,
            work=self.log_work,
        )
        self.metadata, self.logs = self.storage.metadata, self.storage.logs
        with self.storage.closed_on_error(), self.storage.loading():
            self.common = Common(
                config,
                self.storage,
                clock,
                timer,
                self.quotas,
                self.connection_quotas,
                steps,
                random_uuid,
            )
        self.file_quotas = FileQuotas(self.metadata, self.common.client_quotas)
        self.upkeep = LogUpkeep(self.logs, self.log_work, config.upkeep)
        self.checkpoints = MetadataCheckpoints(
            self.storage.metadata_path, self.storage.changes, timer, clock, offload
        )
        self.companions = Companions(plugins.all if runs_companions else (), clock)
        self.opened = opened
        self.clients = Part(self.open, self.close_listeners, waits_for=self.connected)
        self.files = Part(self.load, self.close, self.metric_rows, self.not_ready)
        self.work = Part(self.start_work, self.stop_work)

    def add_listener(
        self,
        kind: Callable[..., Listener],
        address: ListenerAddress,
        dispatcher: Dispatcher,
        memory: Memory,
        disconnected: Callable[[str, bool], None],
    ) -> None:
        """Make a listener of the kind that it needs, not started."""
        config = self.spine.config
        made = kind(
            address,
            dispatcher=dispatcher,
            clock=self.spine.clock,
            timer=self.spine.timer,
            quotas=self.connection_quotas,
            turns=self.turns,
            memory=memory,
            node_id=config.broker.node_id,
            max_request_bytes=config.socket_request_max_bytes,
            disconnected=disconnected,
            proxies=config.of_listener(config.proxies, address.name),
        )
        self.listeners.append(made)

    async def open(self) -> None:
        """Open the listeners, then start the companions, which connect to them.

        Raises:
            ConfigError: A listener's port is in use.
        """
        for each in self.listeners:
            await each.start()
            self.opened(each)
        nearby = [(each.address, each.address.nearby(each.bound_port)) for each in self.listeners]
        self.companions.start([(address.security_protocol, text) for address, text in nearby])

    async def close_listeners(self) -> None:
        """Answer waiting requests within the time, and close all connections."""
        closes = [each.close(self.spine.stop_s) for each in self.listeners if each.acceptor]
        await asyncio.gather(self.companions.stop(self.spine.stop_s), *closes)

    def connected(self) -> str:
        """The connections, and the companions that may still run."""
        connections = sum(len(each.channels) for each in self.listeners)
        names = [each.name for each in self.companions.runners]
        return f"{connections} connections" + (f", companions: {', '.join(names)}" if names else "")

    @property
    def addresses(self) -> list[str]:
        """The addresses of the listeners, with the ports that were bound."""
        return [str(replace(each.address, port=each.bound_port)) for each in self.listeners]

    def directory_failed(self, online: list[Path]) -> None:
        """Give up if no log directory works: no partition is left, and a restart may find the disks again."""
        if not online:
            self.failed(f"{OFFLINE}; repair the disks, then restart")

    def load(self) -> None:
        """Put the quotas of the file in force.

        Raises:
            ConfigError: They are not valid, or cannot be stored.
        """
        with self.storage.loading():
            self.file_quotas.apply(self.spine.config.client_quotas)

    def start_work(self) -> None:
        """Begin the upkeep of files, and of what clients have left."""
        clock, timer = self.spine.clock, self.spine.timer
        self.log_work.start()
        self.upkeep.start()
        self.checkpoints.start()
        forget_idle(self.quotas, clock, timer)
        forget_idle(self.connection_quotas, clock, timer)
        close_idle(self.listeners, self.spine.config.connections_max_idle_ms, clock, timer)

    def stop_work(self) -> None:
        self.common.steps.stop()
        self.log_work.stop()

    def close(self) -> None:
        """Close all files. The next start recovers what is not saved within ``shutdown.timeout.ms``."""
        clock = self.spine.clock
        deadline_ms = clock.monotonic_ms() + self.spine.stop_s * 1000

        def has_time() -> bool:
            self.spine.stop_report.look()
            return clock.monotonic_ms() < deadline_ms

        self.storage.close(has_time)

    def not_ready(self) -> str | None:
        return None if self.logs.online else OFFLINE

    def metric_rows(self) -> Iterator[MetricRow]:
        """The clients' connections and quotas, and the disks."""
        now_ms = self.spine.clock.monotonic_ms()
        yield from listener_rows(self.listeners)
        yield from LOGS.rows(self.logs)
        yield from quota_rows(self.quotas, now_ms)
        yield from connection_rows(self.connection_quotas, now_ms)
