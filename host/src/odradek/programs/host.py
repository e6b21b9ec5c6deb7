"""What happens when `odradek serve` starts: the parts of a host, in the order of their start.

Errors are found before the first connection. The stop runs in the reverse order, and loses nothing that was
acknowledged.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from odradek.broker.broker import Broker, make_groups
from odradek.broker.broker_settings import Endpoint
from odradek.broker.connection_uses import ConnectionUses
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Route, Routes
from odradek.broker.told_members import expulsion_teller
from odradek.gateway.observation.settings import Observe
from odradek.gateway.telemetry_settings import SubscriptionSource
from odradek.group.offset_expiration import OffsetExpiration
from odradek.hosting.active_plugin import only_offer
from odradek.hosting.authorizers import GuardedAuthorizer, chosen_authorizer
from odradek.hosting.offers import PRINCIPAL_BUILDER
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.meters.authentication_metrics import key_rows
from odradek.meters.memory_metrics import memory_rows
from odradek.meters.metrics import request_rows, worker_rows
from odradek.meters.share_metrics import share_rows
from odradek.meters.state_metrics import state_rows
from odradek.metrics.metric import MetricRow
from odradek.net.authentications import Authentications
from odradek.net.channel import Channel
from odradek.net.held_bytes import Memory
from odradek.net.listener import Listener
from odradek.net.listener_kinds import listener_kind
from odradek.process.payload_workers import PayloadWorkers
from odradek.process.random_ids import random_session_id
from odradek.programs.config import HostConfig
from odradek.programs.ground import Ground
from odradek.programs.lag import lag_parts
from odradek.programs.plugins import Plugins
from odradek.programs.pushes import Pushes
from odradek.programs.reload import Reloader
from odradek.programs.spine import Part, Spine
from odradek.programs.topology import TopologyLooks
from odradek.security.principals import BuiltPrincipals
from odradek.telemetry.goodbyes import places
from odradek.telemetry.topology import Topology
from odradek.waiting.clock import Clock
from odradek.waiting.deferred import offload_inline
from odradek.wire.declared import DeclaredResponses

GUARDED = GuardedAuthorizer | BuiltPrincipals


class Host:
    """A host on the running event loop.

    Args:
        config: Its configuration.
        clock: The time; by default the system's.
        plugins: The plugins; by default those that are installed.
        recover_metadata: Rebuild a lost or damaged metadata file from the partitions.
        failed: Called with the reason when the host can do nothing any more; it should be stopped.
        dispatcher: Makes what answers requests, from the broker and its handlers.

    Raises:
        ConfigError: The data directory, a plugin or a certificate is not usable.
    """

    def __init__(
        self,
        config: HostConfig,
        clock: Clock | None = None,
        plugins: HostPluginManager | None = None,
        *,
        recover_metadata: bool = False,
        failed: Callable[[str], None] = lambda _reason: None,
        dispatcher: Callable[[Broker, Mapping[int, Route]], Dispatcher] = Dispatcher,
    ) -> None:
        self.config = config
        self.spine = spine = Spine(config, clock)
        self.clock, self.timer, self.outlets = spine.clock, spine.timer, spine.outlets
        self.metric_rows = spine.metric_rows
        self.plugins = Plugins(spine, plugins)
        self.receivers = self.plugins.receivers
        slow_ms, hooks = config.telemetry.slow_ms, self.plugins.all
        self.authorizer = chosen_authorizer(config.authorizer, hooks, self.clock, slow_ms)
        builder = only_offer(hooks, PRINCIPAL_BUILDER, "build principals")
        longest = config.broker.name_max_length
        principals = builder and BuiltPrincipals(*builder, longest, self.clock, slow_ms)
        asked = (self.authorizer, principals)
        self.plugins.stats += [each.stats for each in asked if isinstance(each, GUARDED)]
        self.ground = Ground(
            spine, self.plugins, failed, opened=self.advertise, recover_metadata=recover_metadata
        )
        spine.cluster.cluster_id = self.ground.common.cluster_id
        self.metadata, self.logs, self.turns = self.ground.metadata, self.ground.logs, self.ground.turns
        self.listeners = self.ground.listeners
        with self.ground.storage.closed_on_error():
            self.make_broker()
            self.dispatcher = dispatcher(self.broker, Routes())
            self.make_listeners(principals)

    def make_broker(self) -> None:
        """Make what answers requests.

        Raises:
            ConfigError: A file is damaged, or cannot be read or written; a topic cannot be created.
        """
        config, spine, ground = self.config, self.spine, self.ground
        with ground.storage.loading():
            groups = make_groups(ground.common)
        followed = ",".join(config.follow.servers) or None
        self.pushes = Pushes(
            spine,
            self.plugins,
            ground,
            groups.offsets,
            origin=f"{socket.gethostname()}/{config.broker.node_id}",
            source=SubscriptionSource.BOTH if followed else None,
            followed_cluster=followed,
            members=lambda: places(groups.places()),
        )
        groups.expelled = expulsion_teller(self.pushes.incidents, groups.places)
        self.telemetry, self.spool, self.forwarders = (
            self.pushes.manager,
            self.pushes.spool,
            self.pushes.forwarders,
        )
        # Record batches have a process of their own, so that producers cannot hold up pushes.
        self.batch_workers = PayloadWorkers(1, config.workers) if config.workers.processes else None
        with ground.storage.loading():
            self.broker = Broker(
                ground.common,
                self.pushes.handling,
                groups,
                random_session_id,
                offload=offload_inline if self.batch_workers is None else self.batch_workers.offload,
                authorizer=self.authorizer,
                certificates=spine.certificates,
            )
        self.broker.follow(config.upkeep, ground.upkeep.use_settings)
        spine.certificates.update(self.broker.config.certificate_texts())

    def make_listeners(self, principals: BuiltPrincipals | None) -> None:
        """Make what takes connections, and list all parts.

        Raises:
            ConfigError: A listener's settings contradict each other.
        """
        config, spine, ground, pushes = self.config, self.spine, self.ground, self.pushes
        self.memory = Memory(config.memory, config.socket_request_max_bytes, self.clock, self.timer)
        passwords = spine.new_threads()
        self.authentications = Authentications(config, self.broker, passwords, principals)
        kinds = listener_kind(self.authentications, self.broker, spine.certificates.listeners)
        channels, observation = self.observed()
        for address in config.listeners:
            kind = partial(kinds(address), channel_kind=channels)
            ground.add_listener(kind, address, self.dispatcher, self.memory, self.connection_closed)
        lag = lag_parts(config, pushes, self.broker, pushes.origin)
        self.reloader = Reloader(config, self.plugins, ground, pushes, spine.certificates)
        spine.parts += [
            ground.files,
            self.plugins.part,
            pushes.subscriptions,
            Part(self.load, self.broker.transactions.close, self.metric_rows_of_broker),
            *spine.base,
            Part(self.authentications.start, self.authentications.close, self.metric_rows_of_connections),
            ground.work,
            pushes.delivery,
            pushes.telling,
            *observation,
            *lag,
            *self.topology(),
            pushes.opening,
            Part(stop=self.close_workers),
            ground.clients,
            Part(self.broker.groups.start),  # only now: members cannot come back before
            pushes.bringing,
        ]

    def connection_closed(self, connection_id: str, in_order: bool = False) -> None:
        """Tell those that follow connections."""
        self.telemetry.connection_closed(connection_id, in_order)
        self.pushes.incidents.stuck.closed(connection_id)
        self.broker.shares.connection_closed(connection_id)
        if self.broker.uses is not None:
            self.broker.uses.connection_closed(connection_id)
        if self.broker.fetch_reads is not None:
            self.broker.fetch_reads.connection_closed(connection_id, self.clock.monotonic_ms())

    def topology(self) -> list[Part]:
        """The part that knows who uses which topic."""
        if not self.config.topology.most:
            return []
        topology = Topology(self.config.topology.most, self.name_of)
        self.broker.uses = uses = ConnectionUses(topology, self.broker.topics, self.clock)
        return [TopologyLooks(topology, uses.look, self.spine).part]

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of a topic with an id."""
        topic = self.broker.topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def observed(self) -> tuple[Callable[[Listener], Channel], list[Part]]:
        """The channels of the listeners; those of observed clients tell the observation."""
        config = self.config
        if config.observation.observe is Observe.NONE:
            return Channel, []
        from odradek.net.observed_channel import ObservedChannel  # hosts without it start faster
        from odradek.programs.observation import observation_of

        settings = replace(config.gateway.own_telemetry.observation, observe=config.observation.observe)
        found = observation_of(settings, self.pushes, DeclaredResponses(), name_of=self.name_of)
        if found is None:
            return Channel, []
        return partial(ObservedChannel, observer=found.observation), [found.part]

    @property
    def addresses(self) -> list[str]:
        """The addresses of the listeners, with the ports that were bound."""
        return self.ground.addresses

    def load(self) -> None:
        """Load transactions, and forget offsets from time to time.

        Raises:
            ConfigError: The metadata file is damaged, or cannot be read or written.
        """
        with self.ground.storage.loading():
            self.broker.transactions.start()
        for limit in self.broker.state_limits:
            limit.warn_if_exceeded()
        OffsetExpiration(self.broker.groups).start()

    def advertise(self, listener: Listener) -> None:
        """Tell clients the address of a listener that has opened."""
        address = listener.address
        here = Endpoint(address.host or "localhost", listener.bound_port)
        self.broker.endpoints[address.name] = self.config.advertised.get(address.name, here)

    async def close_workers(self) -> None:
        if self.batch_workers is not None:
            await self.batch_workers.close()

    def metric_rows_of_broker(self) -> Iterator[MetricRow]:
        """Requests, rights, and what clients have made."""
        yield from request_rows(self.dispatcher, self.broker)
        yield from worker_rows({"batch": self.batch_workers})
        yield from share_rows(self.broker.shares)
        yield from state_rows(
            self.broker.state_limits, self.broker.names, self.telemetry.subscriptions.skipped
        )

    def metric_rows_of_connections(self) -> Iterator[MetricRow]:
        """The keys of tokens, and the memory of all connections."""
        yield from key_rows(self.authentications.key_sets.values(), self.clock.monotonic_ms())
        yield from memory_rows(self.memory.requests, self.memory.answers)

    async def start(self) -> None:
        """Start the parts in their order.

        Raises:
            ConfigError: A listener's port is in use, or a subscription is invalid.
        """
        await self.spine.start()

    async def stop(self) -> None:
        """Answer waiting requests, flush the forwarders within ``shutdown.timeout.ms``, close everything."""
        await self.spine.stop()
