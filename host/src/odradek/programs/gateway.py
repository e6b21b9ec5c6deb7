"""What happens when `odradek gateway` starts: the parts of a gateway, in the order of their start.

A gateway has the log and the telemetry of a host, and answers the two requests of KIP-714 with them. All
other requests pass to the brokers: it has no groups, transactions and fetch sessions of its own, and rights
only if it has subscriptions that clients may change (``gateway.client.metrics = "own"``).
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from odradek.broker.answering import Answering
from odradek.broker.authorization import Authorization
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.gateway.gateway_labels import GatewayLabels
from odradek.gateway.pair_incidents import PairIncidents
from odradek.gateway.path_quotas import PathQuotas
from odradek.gateway.reachability import PATIENCE_MS
from odradek.gateway.telemetry_answers import TelemetryAnswers
from odradek.gateway.topic_names import TopicNames
from odradek.group.group_offsets import GroupOffsets
from odradek.hosting.authorizers import chosen_authorizer
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.lag.readers import Reader, Reading
from odradek.meters.gateway_metrics import gateway_rows
from odradek.meters.loop_lag import LoopLag
from odradek.meters.metrics import request_rows
from odradek.meters.state_metrics import state_rows
from odradek.metrics.metric import MetricRow
from odradek.net.held_bytes import Memory
from odradek.net.listener_kinds import handshakes_of, strangers
from odradek.net.pairs.client_side import ClientSide, GatewayListener
from odradek.net.pairs.dialer import Address
from odradek.programs.config import HostConfig
from odradek.programs.gateway_lag import gateway_lag_parts
from odradek.programs.gateway_pairs import pairs_of
from odradek.programs.ground import Ground
from odradek.programs.observation import observation_of
from odradek.programs.plugins import Plugins
from odradek.programs.pushes import Pushes
from odradek.programs.reload import Reloader
from odradek.programs.spine import Part, Spine
from odradek.programs.topology import TopologyLooks
from odradek.settings.state_limit import StateLimit
from odradek.telemetry.goodbyes import Place
from odradek.telemetry.topology import Topology
from odradek.waiting.clock import Clock
from odradek.wire.declared import DeclaredResponses
from odradek.wire.messages.describe_configs import DescribeConfigsRequest
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.wire.messages.list_config_resources import ListConfigResourcesRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

if TYPE_CHECKING:
    from odradek.client.admin import AdminClient
    from odradek.client.cluster_watch import Observed

log = logging.getLogger(__name__)

ENRICHER: Final = "gateway"
"""The name of the gateway's labels among the plugins."""
SOCKETS: Final = 2
"""Of each pair."""
OF_SUBSCRIPTIONS: Final = (DescribeConfigsRequest, IncrementalAlterConfigsRequest, ListConfigResourcesRequest)
UNREACHABLE: Final = f"no broker has answered for {PATIENCE_MS // 1000} s"


class Gateway:
    """A gateway on the running event loop.

    Args:
        config: The configuration.
        upstream: The brokers of the bootstrap list.
        tls: Encrypts connections to brokers; None for a cluster without TLS.
        requires_sasl: The brokers' listener has SASL.
        failed: Called with the reason when the gateway can do nothing any more; it should be stopped.
        clock: The time; by default the system's.
        plugins: The plugins; by default those that are installed.
        refresh: Asks the cluster for its brokers soon.
        is_first: Whether sources and companions run here, and lag is measured: of several workers, in the
            first one.
        connect: Makes a client of the cluster, to measure lag; None not to measure it.

    Raises:
        ConfigError: The data directory, a plugin or a certificate is not usable, or the settings of the
            addresses contradict each other.
    """

    def __init__(
        self,
        config: HostConfig,
        upstream: Sequence[Address],
        tls: ssl.SSLContext | None,
        requires_sasl: bool,
        failed: Callable[[str], None],
        clock: Clock | None = None,
        plugins: HostPluginManager | None = None,
        *,
        refresh: Callable[[], None] = lambda: None,
        is_first: bool = True,
        connect: Callable[[], AdminClient] | None = None,
    ) -> None:
        self.config = config
        # a plugin that fails does not take clients from their brokers
        self.spine = spine = Spine(config, clock, needs_plugins=False)
        self.clock, self.timer, self.outlets = spine.clock, spine.timer, spine.outlets
        self.metric_rows = spine.metric_rows
        self.plugins = Plugins(spine, plugins)
        self.receivers = self.plugins.receivers
        self.receivers.displace_all()  # whatever they do, the loop passes data
        own = config.gateway.own_telemetry
        self.labels = GatewayLabels(own.name or socket.gethostname(), spine.cluster)
        self.plugins.enrichers.register(ENRICHER, self.labels)
        self.ground = ground = Ground(spine, self.plugins, failed, sockets=SOCKETS, runs_companions=is_first)
        with ground.storage.closed_on_error():
            with ground.storage.loading():
                offsets = GroupOffsets(ground.storage.offsets)
            self.pushes = pushes = Pushes(
                spine,
                self.plugins,
                ground,
                offsets,
                origin=self.labels.name,
                source=own.subscriptions,
                members=self.members,
                spool_full=own.spool_full,
                runs_sources=is_first,
            )
            self.telemetry, self.forwarders = pushes.manager, pushes.forwarders
            requests: list[type[Any]] = [GetTelemetrySubscriptionsRequest, PushTelemetryRequest]
            if own.own_resources:
                requests += OF_SUBSCRIPTIONS
            answering = Answering(ground.common, pushes.handling, self.rights())
            self.dispatcher = Dispatcher(answering, Routes(*requests))
            self.answers = TelemetryAnswers(self.dispatcher, self.telemetry)
            responses = DeclaredResponses()
            self.topic_names = TopicNames(refresh)
            most = config.topology.most
            self.topology = Topology(most, self.topic_names.name_of) if most else None
            self.observed = observed = observation_of(
                own.observation,
                pushes,
                responses,
                follows_fetches=config.gateway_lag.measured.has_clients,
                topology=self.topology,
                name_of=self.topic_names.name_of,
            )
            self.incidents = PairIncidents(pushes.incidents)
            if observed is not None:
                observed.observation.incidents = self.incidents
            self.pairs = pairs_of(
                config,
                upstream,
                tls,
                requires_sasl,
                self.clock,
                self.timer,
                quotas=PathQuotas(ground.quotas, responses, self.incidents.held_back),
                answers=self.answers,
                silence=self.answers.silence,
                observer=None if observed is None else observed.observation,
                login_refused=self.incidents.login_refused,
                refresh=refresh,
            )
            self.memory = Memory(config.memory, config.socket_request_max_bytes, self.clock, self.timer)
            self.listeners = ground.listeners
            self.make_listeners()
            self.reloader = Reloader(config, self.plugins, ground, pushes, spine.certificates)
            loop_lag = LoopLag()
            spine.parts += [
                ground.files,
                self.plugins.part,
                pushes.subscriptions,
                Part(self.warn, metric_rows=self.metric_rows_of_telemetry),
                *spine.base,
                ground.work,
                pushes.delivery,
                pushes.telling,
                pushes.opening,
                Part(self.follow_switch, metric_rows=self.metric_rows_of_path, not_ready=self.unreachable),
                ground.clients,
                pushes.bringing,
                *self.observation_parts(),
                *gateway_lag_parts(config, spine, pushes, connect, self.readings, is_first=is_first),
                Part(loop_lag.start, loop_lag.stop, loop_lag.metric_rows),
            ]

    def members(self) -> Mapping[Place, int]:
        """The members of groups that the gateway observes."""
        return {} if self.observed is None else self.observed.observation.members()

    def readings(self) -> Iterator[tuple[Reader, Reading]]:
        """What each connection reads."""
        return iter(()) if self.observed is None else self.observed.observation.readings()

    def observation_parts(self) -> list[Part]:
        """The parts that know clients from what they send."""
        if self.observed is None:
            return []
        parts = [self.observed.part]
        if self.topology is not None:
            looks = TopologyLooks(self.topology, self.observed.observation.look_at_uses, self.spine)
            parts.append(looks.part)
        return parts

    def rights(self) -> Authorization:
        """The rights to change the gateway's own subscriptions; everybody has them without an authorizer."""
        config, plugins = self.config, self.plugins
        if not config.gateway.own_telemetry.own_resources:
            return Authorization()
        found = chosen_authorizer(config.authorizer, plugins.all, self.clock, config.telemetry.slow_ms)
        return Authorization(found, self.ground.common.audit.denied)

    def make_listeners(self) -> None:
        """Make the listeners.

        Raises:
            ConfigError: A certificate is not for the names that clients dial.
        """
        config, ground, tls = self.config, self.ground, self.spine.certificates.listeners
        unauthenticated = strangers(config.sasl, ground.connection_quotas, self.timer)
        secured = handshakes_of(tls, unauthenticated, ground.common.audit, self.clock)
        for address in config.listeners:
            routing = self.pairs.routings[address.name]
            if address.name in secured:
                routing.secure(tls[address.name])
            handshakes = secured.get(address.name)
            kind = partial(GatewayListener, gateway=self.pairs, routing=routing, handshakes=handshakes)
            ground.add_listener(kind, address, self.dispatcher, self.memory, self.telemetry.connection_closed)

    @property
    def addresses(self) -> list[str]:
        """The addresses of the listeners, with the ports that were bound."""
        return self.ground.addresses

    @property
    def state_limits(self) -> list[StateLimit]:
        """The limits of everything that clients and operators create here."""
        common, subscriptions = self.ground.common, self.telemetry.subscriptions
        return [*common.topics.limits, common.client_quotas.limit, *subscriptions.limits]

    def warn(self) -> None:
        for limit in self.state_limits:
            limit.warn_if_exceeded()

    def follow_switch(self) -> None:
        """Take the steps of the kill switch that a file names, if there is one."""
        path = self.config.gateway.switch_file
        if path is not None:
            self.pairs.follow_file(path, self.timer)

    def polled(self, state: Observed) -> None:
        """Take note of the result of a poll of the cluster; on the loop.

        Never raises: telemetry must not disturb what passes through the gateway.
        """
        if state.failure is None:
            self.pairs.reachability.reached()
        elif not state.nodes:
            self.pairs.reachability.missed(self.clock.monotonic_ms())
        try:
            self.learn(state)
        except Exception:
            log.exception("result of a poll cannot be used")
        assert self.pushes.followed is not None
        self.pushes.followed.polled(state)

    def learn(self, state: Observed) -> None:
        """Take note of the brokers and the id of the cluster."""
        for node in state.nodes:
            self.pairs.learned(*node)
        self.topic_names.learn(state.topic_names)
        if state.topic_names and self.topology is not None:
            self.topology.name_topics(self.clock.now_ms())
        cluster = self.spine.cluster
        if state.cluster_id is not None and state.cluster_id != cluster.cluster_id:
            cluster.cluster_id = state.cluster_id
            self.plugins.enrichers.changes.note(None)

    def unreachable(self) -> str | None:
        """Why no client can reach a broker here; None if they can."""
        return None if self.pairs.reachability.is_ready(self.clock.monotonic_ms()) else UNREACHABLE

    def metric_rows_of_telemetry(self) -> Iterator[MetricRow]:
        """The answers to telemetry, and what clients and operators have made."""
        yield from self.answers.metric_rows()
        yield from request_rows(self.dispatcher, self.dispatcher.broker)
        yield from state_rows(
            self.state_limits, self.ground.common.names, self.telemetry.subscriptions.skipped
        )

    def metric_rows_of_path(self) -> Iterator[MetricRow]:
        """The data path."""
        sides = [cast(ClientSide, cast(Any, side)) for each in self.listeners for side in each.channels]
        yield from gateway_rows(self.pairs, sides, self.clock.monotonic_ms())

    async def start(self) -> None:
        """Start the parts in their order.

        Raises:
            ConfigError: A listener's port is in use, or a subscription is invalid.
        """
        await self.spine.start()

    async def stop(self) -> None:
        """Let the pairs end, flush the forwarders within ``shutdown.timeout.ms``, close everything."""
        await self.spine.stop()
