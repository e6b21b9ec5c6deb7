"""The client instances that a broker remembers, and their expiry: the state of ClientMetricsManager.java."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from odradek.bounds.sampled_log import SampledLog
from odradek.plugin.context import RequestContext
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance, new_instance
from odradek.telemetry.client_metrics_stats import ClientMetricsStats
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata, metadata_of
from odradek.telemetry.narrowed_clients import NarrowedClients
from odradek.telemetry.subscriptions import Subscriptions
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.waiting.clock import Clock, Timer

log = logging.getLogger(__name__)

CAPACITY_WARNING_INTERVAL_MS: Final = 300_000


@dataclass(slots=True, eq=False)
class ClientInstances:
    """A cache of instances, least recently used first, with the connection that created each.

    An instance that is evicted from the cache keeps its metrics and its timer, as in Kafka. Unlike in Kafka,
    no more evicted instances are kept than the cache holds, and an instance that comes back cancels its old
    timer.
    """

    config: TelemetryConfig
    clock: Clock
    timer: Timer
    subscriptions: Subscriptions
    stats: ClientMetricsStats
    cached: OrderedDict[bytes, ClientMetricsInstance] = field(default_factory=OrderedDict)
    evicted: OrderedDict[bytes, ClientMetricsInstance] = field(default_factory=OrderedDict)
    narrowed: NarrowedClients = field(init=False)
    connections: dict[str, bytes] = field(default_factory=dict)
    """By connection: the client instance that a request on it created, or created again."""
    capacity_log: SampledLog = field(
        default_factory=lambda: SampledLog(log, interval_ms=CAPACITY_WARNING_INTERVAL_MS)
    )
    on_expiry: Callable[[ClientMetricsInstance], None] = field(init=False)
    """`expire`, one object for all instances."""

    def __post_init__(self) -> None:
        self.on_expiry = self.expire
        self.narrowed = NarrowedClients(self.config, self.clock, self.timer, self.cached)

    def instance(
        self, client_instance_id: bytes, context: RequestContext, now_ms: int
    ) -> ClientMetricsInstance:
        """The instance with this id, under the current subscriptions. Its expiry is postponed."""
        instance = self.cached.get(client_instance_id)
        if instance is None:
            instance = self.create(metadata_of(client_instance_id, context), context)
        elif instance.subscription_version < self.subscriptions.version:
            instance = self.create_anew(instance, context)
        else:
            self.cached.move_to_end(client_instance_id)
        instance.last_connection_id = context.connection.connection_id
        deadline_ms = now_ms + max(self.config.cache_expiry_ms, 3 * instance.push_interval_ms)
        if instance.expiry is None:
            instance.expiry = self.timer.schedule(deadline_ms, instance.expire)
        else:
            instance.expiry.postpone(deadline_ms)
        return instance

    def create(
        self, metadata: ClientMetricsInstanceMetadata, context: RequestContext
    ) -> ClientMetricsInstance:
        """Add a new instance to the cache. If the cache is full, evict the least recently used one."""
        client_instance_id = metadata.client_instance_id
        version = self.subscriptions.version
        stats = self.stats.register(client_instance_id)
        plan = self.narrowed.plan(client_instance_id, self.subscriptions.plan(metadata))
        instance = new_instance(metadata, plan, version, stats)
        instance.on_expiry = self.on_expiry
        self.cached[client_instance_id] = instance
        self.cached.move_to_end(client_instance_id)
        self.connections[context.connection.connection_id] = client_instance_id
        earlier = self.evicted.pop(client_instance_id, None)
        if earlier is not None:
            cancel_expiry(earlier)
        if len(self.cached) > self.config.cache_size:
            self.evict()
        return instance

    def create_anew(self, outdated: ClientMetricsInstance, context: RequestContext) -> ClientMetricsInstance:
        """The same client with its first attributes, under the new subscriptions."""
        cancel_expiry(outdated)
        instance = self.create(outdated.metadata, context)
        instance.inherit_labels(outdated)
        return instance

    def evict(self) -> None:
        """Evict the least recently used instance."""
        client_instance_id, instance = self.cached.popitem(last=False)
        instance.drop_labels()
        self.evicted[client_instance_id] = instance
        if len(self.evicted) > self.config.cache_size:
            _, oldest = self.evicted.popitem(last=False)
            cancel_expiry(oldest)
            self.forget(oldest)

    def expire(self, instance: ClientMetricsInstance) -> None:
        """Forget a client that was silent for too long."""
        client_instance_id = instance.client_instance_id
        if self.cached.pop(client_instance_id, None) is None:
            self.evicted.pop(client_instance_id, None)
            self.warn_of_capacity()
        self.forget(instance)

    def forget(self, instance: ClientMetricsInstance) -> None:
        """Remove its metrics, and its link to the connection of its last request."""
        self.stats.unregister(instance.client_instance_id)
        if self.connections.get(instance.last_connection_id) == instance.client_instance_id:
            del self.connections[instance.last_connection_id]

    def warn_of_capacity(self) -> None:
        """Log that the cache is too small, at most once in a while."""
        self.capacity_log.write(
            logging.WARNING,
            self.clock.monotonic_ms(),
            "client instance cache is full",
            cache_size=self.config.cache_size,
        )

    def connection_closed(self, connection_id: str) -> None:
        """Remove the instance that was created on the connection, if any."""
        client_instance_id = self.connections.pop(connection_id, None)
        if client_instance_id is None:
            return
        self.stats.unregister(client_instance_id)
        instance = self.cached.pop(client_instance_id, None)
        if instance is not None:
            cancel_expiry(instance)

    def close(self) -> None:
        """Forget everything and leave no timer behind."""
        for instance in (*self.cached.values(), *self.evicted.values()):
            cancel_expiry(instance)
        self.narrowed.close()
        self.cached.clear()
        self.evicted.clear()
        self.connections.clear()


def cancel_expiry(instance: ClientMetricsInstance) -> None:
    """Cancel the timer of an instance."""
    if instance.expiry is not None:
        instance.expiry.cancel()
        instance.expiry = None
