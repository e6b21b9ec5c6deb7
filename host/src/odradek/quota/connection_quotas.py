"""Limits on connections and on their creation rates; after kafka.network.ConnectionQuotas.

An accepted connection passes three stages. It *arrives*: the rates of the broker and of its listener are
recorded. It *waits* until these rates are back at their bounds and there is a free slot; its listener accepts
no other connection meanwhile. Then it *enters*: the rate and the number of connections of its address are
checked, and a connection that exceeds one of them is closed at once.

The inter-broker listener is protected if there are other listeners: the broker's limits do not delay its
connections, and `ConnectionQuotas.over_limit` closes connections of the other listeners to make room.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass

from odradek.metrics.registry import MeasuredMetric
from odradek.plugin.config import ConfigError
from odradek.quota.connection_limits import (
    ConnectionLimits,
    connection_setting,
)
from odradek.quota.connection_rates import ConnectionRates, ListenerRates
from odradek.quota.descriptors import Descriptors
from odradek.quota.host_names import HostNames, Lookup, look_nowhere, plain_address
from odradek.quota.quota_config import QuotaConfig
from odradek.settings.listener_values import listener_key
from odradek.waiting.clock import Clock, Timer, TimerTask

log = logging.getLogger(__name__)


class TooManyConnections(Exception):
    """An address has reached its number of connections. This one was counted: call `ConnectionQuotas.dec` for
    it.

    Args:
        address: The address of the client.
        limit: The number of connections it may have.
    """

    def __init__(self, address: str, limit: int) -> None:
        super().__init__(f"{address} already has {limit} connections, which is its limit")
        self.address = address
        self.limit = limit


class ConnectionThrottled(Exception):
    """An address connects too often. This connection is not counted.

    Args:
        address: The address of the client.
        start_ms: When the connection was refused.
        throttle_ms: How long the address must wait before its next attempt.
    """

    def __init__(self, address: str, start_ms: int, throttle_ms: int) -> None:
        super().__init__(f"{address} connects too often, throttled for {throttle_ms} ms")
        self.address = address
        self.start_ms = start_ms
        self.throttle_ms = throttle_ms


@dataclass(slots=True, eq=False)
class ListenerQuota:
    """The connections of one listener."""

    name: str
    max_connections: int
    rates: ListenerRates
    connections: int = 0


@dataclass(slots=True, eq=False)
class Arrival:
    """A connection that was accepted and has not entered yet."""

    listener: ListenerQuota
    address: str
    earliest_ms: int
    """When the rates will be back at their bounds."""
    waits_since_ns: int = 0
    on_entry: Callable[[], None] | None = None
    task: TimerTask | None = None


class ConnectionQuotas:
    """Numbers and rates of connections: of the broker, of each listener and of each address.

    Args:
        clock: The time of arrivals.
        timer: Ends the waits.
        config: Windows of the rates.
        configured: The limits in the configuration file.
        inter_broker_listener: The name of the protected listener.
        lookup: Resolves host names that appear in limits.
        descriptors: The most sockets that the process may have, whatever the limits say.
        departing: Connections that are counted although their clients have left: others wait until they are
            gone.
        over_limit: Called when there are more connections than the broker may have; must close `excess` of
            them.
    """

    def __init__(
        self,
        clock: Clock,
        timer: Timer,
        config: QuotaConfig | None = None,
        configured: ConnectionLimits | None = None,
        inter_broker_listener: str = "PLAINTEXT",
        lookup: Lookup = look_nowhere,
        descriptors: Descriptors | None = None,
        departing: Sized = (),
        over_limit: Callable[[ConnectionQuotas], None] | None = None,
    ) -> None:
        self.clock = clock
        self.timer = timer
        self.configured = configured or ConnectionLimits()
        self.dynamic: dict[str, str] = {}
        self.limits = self.configured
        self.inter_broker_listener = inter_broker_listener
        self.descriptors = descriptors or Descriptors()
        self.hosts = HostNames(lookup)
        self.rates = ConnectionRates(config or QuotaConfig(), clock, self.limits.creation_rate)
        self.named_rates: dict[str, float] = {}
        self.per_ip_overrides: dict[str, int] = {}
        self.listeners: dict[str, ListenerQuota] = {}
        self.counts: dict[str, int] = {}
        self.total = 0
        self.waiting: list[Arrival] = []
        self.departing = departing
        self.over_limit = over_limit
        self.resolve_overrides()

    def add_listener(self, name: str) -> None:
        """Add a listener. All must be added before the first connection arrives."""
        rates = self.rates.add_listener(name, self.limits.listener_creation_rate(name))
        self.listeners[name] = ListenerQuota(name, self.limits.listener_connections(name), rates)
        self.wake()

    def remove_listener(self, name: str) -> None:
        """Remove a listener that was closed."""
        self.listeners.pop(name, None)
        self.rates.remove_listener(name)
        self.wake()

    def is_protected(self, listener: str) -> bool:
        """Whether a listener is exempt from the broker's limits."""
        return listener == self.inter_broker_listener and len(self.listeners) > 1

    def arrive(self, listener: str, address: str) -> Arrival:
        """Record an accepted connection.

        Args:
            listener: The listener that accepted it.
            address: The client's address, as `odradek.wire.host_address` writes it.

        Raises:
            KeyError: The listener was not added.
        """
        quota = self.listeners[listener]
        now_ms = self.clock.monotonic_ms()
        throttle_ms = self.rates.record_arrival(quota.rates, self.is_protected(listener), now_ms)
        return Arrival(quota, without_scope(address), now_ms + throttle_ms)

    def may_enter(self, arrival: Arrival) -> bool:
        """Whether the rates are back at their bounds and there is a free slot."""
        return self.has_slot(arrival.listener) and self.clock.monotonic_ms() >= arrival.earliest_ms

    def has_slot(self, listener: ListenerQuota) -> bool:
        """Whether there is a free slot for a connection of this listener."""
        if listener.connections >= listener.max_connections:
            return False
        if self.is_protected(listener.name):
            # it may make room, as long as other listeners have connections
            return self.total < self.descriptors.connections or listener.connections < self.total
        return self.total < self.most

    def wait(self, arrival: Arrival, on_entry: Callable[[], None]) -> None:
        """Call ``on_entry`` once, as soon as the connection may enter."""
        arrival.on_entry = on_entry
        arrival.waits_since_ns = self.clock.monotonic_ns()
        self.waiting.append(arrival)
        if arrival.earliest_ms > self.clock.monotonic_ms():
            arrival.task = self.timer.schedule(arrival.earliest_ms, self.wake)

    def abandon(self, arrival: Arrival) -> None:
        """Take a connection off the waiting list, because it enters or its listener is being closed."""
        arrival.on_entry = None  # it may hold the arrival
        if arrival in self.waiting:
            self.waiting.remove(arrival)
        if arrival.task is not None:
            arrival.task.cancel()

    def wake(self) -> None:
        """Let in the waiting connections that may enter now, in the order of arrival."""
        for arrival in list(self.waiting):
            # on_entry may take the last slot or close other arrivals, so each one is checked again.
            if arrival in self.waiting and self.may_enter(arrival):
                on_entry = arrival.on_entry
                self.abandon(arrival)
                waited_ns = self.clock.monotonic_ns() - arrival.waits_since_ns
                arrival.listener.rates.blocked.record(waited_ns, self.clock.monotonic_ms())
                assert on_entry is not None
                on_entry()

    def enter(self, arrival: Arrival) -> None:
        """Count a connection that has finished waiting.

        Raises:
            ConnectionThrottled: Its address connects too often.
            TooManyConnections: Its address has too many connections.
        """
        listener, address, now_ms = arrival.listener, arrival.address, self.clock.monotonic_ms()
        protected = self.is_protected(listener.name)
        throttle_ms = self.rates.record_address(listener.rates, protected, address, now_ms)
        if throttle_ms > 0:
            raise ConnectionThrottled(address, now_ms, throttle_ms)
        # As in Kafka, the connection is counted before the limit is checked: the caller closes the socket as
        # it does any other, and that ends in `dec`.
        before = self.counts.get(address, 0)
        self.counts[address] = before + 1
        self.total += 1
        listener.connections += 1
        limit = self.per_ip_overrides.get(address, self.limits.max_connections_per_ip)
        if before >= limit:
            raise TooManyConnections(address, limit)

    def dec(self, listener: str, address: str) -> None:
        """Stop counting a connection that was closed.

        Raises:
            ValueError: The address has no connection.
        """
        address = without_scope(address)
        count = self.counts.get(address, 0)
        if count == 0:
            raise ValueError(f"{address} has no connection")
        if count == 1:
            del self.counts[address]
        else:
            self.counts[address] = count - 1
        self.total -= 1
        if listener in self.listeners:
            self.listeners[listener].connections -= 1
        if self.waiting:
            self.wake()

    @property
    def most(self) -> int:
        """The broker's limit in force: ``max.connections``, or what the descriptors allow."""
        return min(self.limits.max_connections, self.descriptors.connections)

    @property
    def excess(self) -> int:
        """The number of connections above the broker's limit, for unprotected listeners to close."""
        return max(self.total - self.most, 0)

    def displace(self) -> None:
        """Close connections if there are too many. Call this when a new connection has its channel."""
        if self.total > self.most and self.over_limit is not None:
            # Only a connection of the protected listener, or a lowered limit, can get the total this far.
            self.over_limit(self)

    def reconfigure(self, key: str, value: str | None, listener: str | None = None) -> None:
        """Change one limit at run time.

        Args:
            key: One of the keys of `odradek.quota.connection_limits`.
            value: As in the configuration; None returns to the value of the configuration file.
            listener: The listener to limit; None for the broker, or if the key has a listener prefix.

        Raises:
            ConfigError: The key is unknown or the value is invalid. Nothing has changed.
        """
        name = key if listener is None else listener_key(listener, key)
        if connection_setting(name) is None:
            raise ConfigError(name, "is not a connection limit")
        changed = {known: text for known, text in self.dynamic.items() if known != name}
        self.update(changed if value is None else changed | {name: value})

    def update(self, properties: Mapping[str, str]) -> None:
        """Replace all limits that were set at run time.

        A connection that waits for a slot enters as soon as there is one. A connection that waits for a rate
        still waits for the time computed when it arrived.

        Raises:
            ConfigError: One of them is invalid. Nothing has changed.
        """
        self.limits = self.configured.changed(properties)
        self.dynamic = dict(properties)
        self.rates.set_bound(self.rates.broker, self.limits.creation_rate)
        for listener in self.listeners.values():
            listener.max_connections = self.limits.listener_connections(listener.name)
            self.rates.set_bound(listener.rates.accepted, self.limits.listener_creation_rate(listener.name))
        self.resolve_overrides()
        self.wake()
        self.displace()

    def resolve_overrides(self) -> None:
        """Resolve the hosts in ``max.connections.per.ip.overrides``."""
        self.per_ip_overrides = {
            address: limit
            for host, limit in self.limits.overrides.items()
            for address in self.hosts.addresses(host, self.host_found)
        }

    def update_ip_rate(self, ip: str | None, rate: float | None) -> None:
        """Change the connection rate of an address; its usage stays.

        Args:
            ip: An address or host name; None for all addresses without a rate of their own.
            rate: Connections per second; None removes the limit.
        """
        if ip is None:
            self.rates.set_default_rate(rate)
            return
        if plain_address(ip) is None:
            if rate is None:
                self.named_rates.pop(ip, None)
            else:
                self.named_rates[ip] = rate
        for address in self.hosts.addresses(ip, self.host_found):
            self.rates.set_address_rate(address, rate)

    def host_found(self, host: str) -> None:
        """Apply limits that name a host, once the host has been looked up."""
        if host not in self.hosts.known:
            log.warning("a connection limit has no effect: its host cannot be resolved", extra={"host": host})
        for address in self.hosts.known.get(host, ()):
            if host in self.limits.overrides:
                self.per_ip_overrides[address] = self.limits.overrides[host]
            if host in self.named_rates:
                self.rates.set_address_rate(address, self.named_rates[host])

    def expire(self, now_ms: int, most: int = sys.maxsize) -> int:
        """Forget the rates of addresses that have not connected for an hour; inspects up to ``most`` of them.
        Call this every 30 s.
        """
        return self.rates.metrics.expire(now_ms, most)

    @property
    def sensors(self) -> int:
        """The number of addresses whose rate is recorded."""
        return len(self.rates.metrics.sensors)

    def measured(self, now_ms: int) -> Iterator[MeasuredMetric]:
        """The metrics of KIP-612, under Kafka's names."""
        yield from self.rates.measured(now_ms)


def without_scope(address: str) -> str:
    """An address without the interface of a link-local one, which Inet6Address.equals does not compare
    either.
    """
    return address.partition("%")[0]
