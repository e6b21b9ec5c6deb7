"""The interface of a test to a running host."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from importlib.metadata import entry_points
from typing import get_args

import odradek
from odradek.broker.broker import Broker
from odradek.broker.broker_settings import Endpoint
from odradek.broker.client_quotas import CLIENT_KEYS, IP_KEYS, Alteration
from odradek.broker.dispatch.routes import Route
from odradek.broker.dispatch.served import SERVED
from odradek.client.users import new_credential
from odradek.hosting.plugin_manager import BUILTIN, GROUP, HostPluginManager, load_plugins
from odradek.hosting.plugin_watch import PluginWatch
from odradek.net.listener import ListenerAddress
from odradek.plugin.client_quota import ABSENT, ClientQuotaEntity, Name
from odradek.programs.config import HostConfig
from odradek.programs.host import Host
from odradek.security.scram import DEFAULT_ITERATIONS, ScramMechanism
from odradek.telemetry import client_metrics_configs
from odradek.telemetry.instance_match import SELECTORS
from odradek.testing.arrivals import Arrivals
from odradek.testing.fault import GARBAGE, Drop, Fault, FaultNotHit, error_code, meant, topic_scope
from odradek.testing.host_brokers import HostBrokers, SeveralNodes, bootstrap
from odradek.testing.host_groups import HostGroups
from odradek.testing.host_security import HostSecurity, acls_of
from odradek.testing.host_thread import HostThread
from odradek.testing.host_topics import HostTopics
from odradek.testing.request_log import RequestLog
from odradek.testing.telemetry_log import TelemetryLog
from odradek.testing.virtual_clock import VirtualClock
from odradek.testing.watched_dispatcher import WatchedDispatcher
from odradek.waiting.clock import SystemClock
from odradek.wire.api_names import api_name
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode

NEWEST = 10
"""Number of pushes listed in the message about a missing one."""


def active_plugins(names: AbstractSet[str], given: Mapping[str, object]) -> HostPluginManager:
    """Load these plugins alone, so that other installed plugins do not affect the test."""
    manager, names = HostPluginManager(), names - {name for name in given if given[name] is not None}
    for name in BUILTIN.keys() & names:
        manager.add(name, BUILTIN[name], GROUP, odradek.__version__, builtin=True)
    with PluginWatch(manager.owner):
        for entry_point in entry_points(group=GROUP) if names else ():
            if entry_point.name in names:
                manager.load(entry_point)
        if not manager.installed.keys() >= names:
            return load_plugins(given)  # one is missing: with all of them loaded, the host's error lists them
        manager.give_all(given)
    return manager


class RunningHost(HostThread):
    """A host that accepts connections in its own thread. All methods may be called from any thread.

    Methods that wait (those of `telemetry` and `requests`, and `Fault.wait`) block the caller; in a
    coroutine they must be awaited: ``await host.telemetry.wait_for("...")``.
    """

    host: Host
    """The host itself, for everything that this class does not offer. Use it only within `call`."""

    def __init__(
        self,
        config: HostConfig,
        clock: VirtualClock | None = None,
        security: HostSecurity | None = None,
        several: bool = False,
    ) -> None:
        super().__init__(config, clock, before_start=self.watch)
        self.virtual_clock = clock
        self.plugins = config.plugins.keys() | config.requested_plugins.keys()
        """The names of the plugins that are active."""
        self.security = security or HostSecurity()
        self.arrivals = Arrivals(self.what_came)
        self.requests = RequestLog(self.arrivals, [api_name(key) for key in SERVED])
        """The newest requests of all clients."""
        self.telemetry = TelemetryLog(self.arrivals, SystemClock().now_ms if clock is None else None)
        """The pushes of all clients."""
        self.topics = HostTopics(self)
        self.groups = HostGroups(self, self.arrivals)
        self.brokers = HostBrokers(self)
        """What it plays with ``brokers=3``."""
        self.several = several
        self.faults: list[Fault] = []

    def make(self) -> Host:
        plugins = active_plugins(self.plugins, self.config.requested_plugins)
        return Host(self.config, self.virtual_clock, plugins, dispatcher=self.watched)

    def watch(self, host: Host) -> None:
        """See the pushes of a host that has not started, and drive its clock."""
        host.receivers.register("odradek.testing", self.telemetry)
        if self.several:
            host.broker.nodes = SeveralNodes(host)
        if self.virtual_clock is not None:
            self.virtual_clock.drive(self)

    def watched(self, broker: Broker, routes: Mapping[int, Route]) -> WatchedDispatcher:
        """The dispatcher of a host, which records requests and applies faults."""
        return WatchedDispatcher(broker, routes, self.requests, self.telemetry, self.faults)

    @property
    def bootstrap(self) -> str:
        """The value for a client's ``bootstrap.servers``: all brokers, if it plays several."""
        return bootstrap(self.config.listeners) if self.several else super().bootstrap

    @property
    def advertised(self) -> str:
        """The address that clients get for the first listener: `bootstrap`, unless another is advertised."""
        endpoint = self.config.advertised.get(self.config.listeners[0].name)
        return self.bootstrap if endpoint is None else f"{endpoint.host}:{endpoint.port}"

    @property
    def clock(self) -> VirtualClock:
        """The virtual clock of the host.

        Raises:
            RuntimeError: The host uses the machine's clock.
        """
        if self.virtual_clock is None:
            raise RuntimeError(
                "this host uses the machine's clock: start it with odradek.testing.host(clock=VirtualClock())"
            )
        return self.virtual_clock

    # Actions

    def subscribe(
        self,
        prefixes: str | Sequence[str] = "*",
        interval_ms: int = 100,
        match: Mapping[str, str] | None = None,
        name: str = "test",
    ) -> None:
        """Create or replace a subscription. Clients see it with their next GetTelemetrySubscriptions.

        A client that got an empty subscription asks again only after five minutes, so subscribe before it
        starts.

        Args:
            prefixes: Prefixes of metric names; ``*`` is all. librdkafka and Java support ``*``, franz-go does
                not.
            interval_ms: Time between two pushes, at least 100. The first push comes after 0.5 to 1.5 times
                that.
            match: Regular expressions by selector (``client_id``, ``client_software_name`` ...) that choose
                the clients; None for all.
            name: Name of the subscription. A second one of the same name replaces the first.

        Raises:
            ApiError: INVALID_REQUEST or INVALID_CONFIG, as for an operator.
            ValueError: There is no such selector.
        """
        for selector in match or ():
            if selector not in SELECTORS:
                raise ValueError(f"unknown selector {selector!r}{meant(selector, SELECTORS)}")
        metrics = [prefixes] if isinstance(prefixes, str) else prefixes
        properties = {"metrics": ",".join(metrics), "interval.ms": str(interval_ms)}
        if match:
            properties["match"] = ",".join(f"{key}={value}" for key, value in match.items())
        self.call(lambda: self.put_subscription(name, properties))

    def unsubscribe(self, name: str = "test") -> None:
        """Delete a subscription."""
        self.call(lambda: self.put_subscription(name, {}))

    def put_subscription(self, name: str, properties: Mapping[str, str]) -> None:
        client_metrics_configs.validate(name, properties)
        self.host.metadata.put_resource(ResourceType.CLIENT_METRICS, name, properties)
        self.host.telemetry.update_subscription(name, properties)

    def quota(
        self, *, user: Name = ABSENT, client_id: Name = ABSENT, ip: Name = ABSENT, **values: float | None
    ) -> None:
        """Set or remove quotas of a user, client id, user and client id, or address, as an operator does.

        A name that is None stands for the default of all entities without quotas of their own.

        Args:
            user: Name of the principal; ``ANONYMOUS`` without authentication.
            client_id: The ``client.id`` of the clients.
            ip: An address, for ``connection_creation_rate``.
            values: ``producer_byte_rate``, ``consumer_byte_rate``, ``request_percentage``,
                ``controller_mutation_rate``; None removes one.

        Raises:
            ValueError: No entity or no quota is named, or there is no such quota.
            ApiError: INVALID_REQUEST if the name or the value is not valid.
        """
        names = ClientQuotaEntity(user=user, client_id=client_id, ip=ip).names()
        if not names:
            raise ValueError("no entity given: expected user, client_id or ip")
        known = CLIENT_KEYS if ip is ABSENT else IP_KEYS
        if not values:
            raise ValueError(f"no quota given: expected one of {', '.join(known)}")
        for key in values:
            if key not in known:
                raise ValueError(f"unknown quota {key!r}{meant(key, known)}")
        alteration = Alteration(names, list(values.items()))
        for refusal in self.call(lambda: self.host.broker.client_quotas.alter([alteration])).values():
            if refusal is not None:
                raise refusal

    def user(self, name: str, password: str) -> None:
        """Create a user or change its password, for SCRAM-SHA-256 and SCRAM-SHA-512.

        Users authenticate on a listener such as ``listeners="SASL_PLAINTEXT://127.0.0.1:0"``.

        Raises:
            ApiError: UNACCEPTABLE_CREDENTIAL if the name is empty or too long.
        """
        for mechanism in ScramMechanism:
            change = new_credential(name, mechanism, password, DEFAULT_ITERATIONS, os.urandom(16))
            alter = partial(self.host.broker.credentials.alter, [], [change])
            refusal = self.call(alter)[name]
            if refusal is not None:
                raise refusal

    def allow(self, *acls: str) -> None:
        """Add ACLs, such as ``"alice READ topic:orders"``, to a host that was started with ``acls``.

        Raises:
            ValueError: A text is not an ACL, or the host has no ACLs.
        """
        added = [acl for text in acls for acl in acls_of(text)]
        kept = self.host.broker.acls
        if added and kept is None:
            raise ValueError("this host allows everything: start it with odradek.testing.host(acls=[])")
        if kept is not None:
            self.call(lambda: list(kept.create_in_steps(added)))

    def client(self, user: str | None = None) -> dict[str, str]:
        """Return the settings of a librdkafka client, for one of the ``users`` or the first of them."""
        return self.security.client(self.bootstrap, user)

    def advertise(self, host: str, port: int, listener: str | None = None) -> None:
        """Change the address that clients get, for example to the port to which a container's port is mapped.

        It stays after a restart.

        Args:
            host: Where clients reach the listener.
            port: The port there.
            listener: Name of the listener; None for the first.

        Raises:
            ConfigError: There is no such listener.
            ValueError: The address is not one.
        """
        if not host or not 0 < port < 65_536:
            raise ValueError(f"expected a host and a port from 1 to 65535, found '{host}:{port}'")
        name = listener or self.config.listeners[0].name
        others = (each for each in self.config.advertised_listeners or () if each.name != name)
        config = replace(self.config, advertised_listeners=(*others, ListenerAddress(name, host, port)))
        config.check()
        self.config = config
        if self.running:
            self.call(lambda: self.host.broker.endpoints.update({name: Endpoint(host, port)}))

    def fault(
        self,
        api: str,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        times: int | None = 1,
        optional: bool = False,
        error: ErrorCode | str | int | None = None,
        delay_ms: int = 0,
        drop: Drop | None = None,
        throttle_ms: int = 0,
        garbage: bool | bytes = False,
    ) -> Fault:
        """Inject a fault into the next requests of an API. If several faults apply, the oldest hits.

        A fault that has hit no request when the test ends fails the test.

        Args:
            api: Kafka's name of the API, such as ``PushTelemetry``.
            client_id: Client id of the requests, or a pattern with ``*``; None for all clients.
            topic: Hit only requests that name this topic, or a pattern with ``*``. ``error`` is then returned
                for this topic, and the rest of the request is served; other effects hit the whole request.
            partition: The same for one partition of the topic.
            times: Number of requests to hit; None for all until `Fault.remove`.
            optional: Whether the test may end without a hit.
            error: Respond with this error, by name or number; the request has no other effect.
            delay_ms: Delay the response by this time of the host's clock.
            drop: Close the connection ``before`` or ``after`` the request takes effect.
            throttle_ms: Report this throttle time in the response.
            garbage: Respond with undecodable bytes, or with the given bytes.

        Raises:
            ValueError: The API or the error is unknown, no effect is given, or a value is not valid.
        """
        self.requests.refuse_unknown(api)
        if times is not None and times < 1:
            raise ValueError(f"times={times}: expected at least 1, or None for all")
        if drop is not None and drop not in get_args(Drop):
            raise ValueError(f"drop={drop!r}: expected {' or '.join(map(repr, get_args(Drop)))}")
        for name, value_ms in (("delay_ms", delay_ms), ("throttle_ms", throttle_ms)):
            if value_ms < 0:
                raise ValueError(f"{name}={value_ms}: must not be negative")
        if error is None and not (delay_ms or drop or throttle_ms or garbage):
            raise ValueError("no effect given: expected error, delay_ms, drop, throttle_ms or garbage")
        fault = Fault(
            api=api,
            arrivals=self.arrivals,
            client_id=client_id,
            scope=topic_scope(api, topic, partition),
            times=times,
            optional=optional,
            error=None if error is None else error_code(error),
            delay_ms=delay_ms,
            drop=drop,
            throttle_ms=throttle_ms,
            garbage=GARBAGE if garbage is True else garbage or None,
        )
        self.call(lambda: self.faults.append(fault))
        return fault

    def check(self) -> None:
        """Check at the end of a test that every fault has hit and every wait was awaited; forget all faults.

        The fixtures and the end of a ``with`` block call this, unless the test has failed already.

        Raises:
            FaultNotHit: A fault that is not optional has hit no request.
            RuntimeError: A coroutine started a wait and did not await it.
        """
        missed = [f"  {fault}" for fault in self.faults if not fault.used and not fault.optional]
        forgotten = list(self.arrivals.not_awaited)
        self.forget_faults()
        if forgotten:
            waits = ", a ".join(forgotten)
            raise RuntimeError(f"not awaited: the wait for a {waits}; write `await` before it")
        if missed:
            told = "no request was hit by a fault; if that may happen, say fault(..., optional=True):"
            raise FaultNotHit("\n".join([told, *missed, *self.what_came()]))

    def forget(self) -> None:
        """Drop the recorded requests and pushes, for example those of an earlier test."""
        self.requests.forget()
        self.telemetry.forget()

    def forget_faults(self) -> None:
        """Remove all faults without checking them."""
        for fault in self.faults:
            fault.remove()
        self.faults.clear()
        self.arrivals.not_awaited.clear()

    # Explanations

    def what_came(self) -> Iterator[str]:
        """Yield the lines that explain to a test why its wait may have failed."""
        stored = self.host.telemetry.subscriptions.by_name
        yield "subscriptions:" if stored else "subscriptions: none, so clients have nothing to push"
        for name, info in stored.items():
            match = f" match={dict(info.match_pattern)}" if info.match_pattern else ""
            yield f"  {name}: metrics={','.join(info.metrics)} interval.ms={info.interval_ms}{match}"
        clients = list(self.requests.summary())
        forgotten = self.requests.forgotten
        none = "no request in this test" if forgotten else f"none has connected to {self.bootstrap}"
        yield "clients:" if clients else f"clients: {none}"
        yield from (f"  {line}" for line in clients)
        for client_id, interval_ms in self.telemetry.told_nothing():
            told = f"{client_id} got an empty subscription and asks again after {interval_ms / 1000:g} s"
            yield f"  {told}: subscribe before it starts"
        pushes = self.telemetry.pushes
        yield f"pushes: {len(pushes)}" + (f", the newest {NEWEST}:" if len(pushes) > NEWEST else "")
        yield from (f"  {push}" for push in pushes[-NEWEST:])
        names = sorted({name for push in pushes for name in push.metrics})
        if names:
            yield "received metrics:"
            yield from (f"  {name}" for name in names)
        if self.faults:
            yield "faults:"
            yield from (f"  {fault}" for fault in self.faults)
