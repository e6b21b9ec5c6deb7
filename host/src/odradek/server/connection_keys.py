"""The connection limits of a host: their keys, their making, and who goes when there are too many.

Names and defaults of the keys are those of SocketServerConfigs.java and ReplicationConfigs.java (Kafka 4.3).
"""

from __future__ import annotations

import asyncio
import heapq
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from odradek.clock import Clock, Timer
from odradek.plugin.config import PluginConfig
from odradek.quota.connection_limits import (
    LISTENER_KEYS,
    MAX_CONNECTION_CREATION_RATE,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    listener_key,
    parse_limits,
)
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_config import MAX_INT, QuotaConfig
from odradek.server.quota_keys import forget_idle
from odradek.server.sockets.listener import Listener, ListenerAddress


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What the configuration file says about connections."""

    inter_broker_listener: str = "PLAINTEXT"
    properties: Mapping[str, str] = field(default_factory=dict)
    """The limits that are set, by key."""


def read_connection_settings(top: PluginConfig, listeners: Sequence[ListenerAddress]) -> ConnectionSettings:
    """The limits of connections.

    Raises:
        ConfigError: A limit is wrong, or the inter-broker listener is none of the listeners.
    """
    for key, least in ((MAX_CONNECTIONS, 0), (MAX_CONNECTIONS_PER_IP, 0), (MAX_CONNECTION_CREATION_RATE, 0)):
        top.integer(key, MAX_INT, least, MAX_INT)
    overrides = top.texts(MAX_CONNECTIONS_PER_IP_OVERRIDES)
    own = {listener_key(listener.name, key) for listener in listeners for key in LISTENER_KEYS}
    top.known.update(own & top.values.keys())
    numbers = {MAX_CONNECTIONS, MAX_CONNECTIONS_PER_IP, MAX_CONNECTION_CREATION_RATE} | own
    properties = {key: str(value) for key, value in top.values.items() if key in numbers}
    if overrides:
        properties[MAX_CONNECTIONS_PER_IP_OVERRIDES] = ",".join(overrides)
    parse_limits(properties)
    return ConnectionSettings(read_inter_broker_listener(top, listeners), properties)


def read_inter_broker_listener(top: PluginConfig, listeners: Sequence[ListenerAddress]) -> str:
    """``inter.broker.listener.name``; the default need not exist."""
    name = top.text("inter.broker.listener.name", "PLAINTEXT") or ""
    if "inter.broker.listener.name" in top.values and name not in {each.name for each in listeners}:
        raise top.error("inter.broker.listener.name", f"no listener has the name {name!r}")
    return name


def make_connection_quotas(
    settings: ConnectionSettings, windows: QuotaConfig, clock: Clock, timer: Timer
) -> ConnectionQuotas:
    """The limits of connections as the configuration has them."""
    return ConnectionQuotas(
        clock, timer, windows, settings.properties, settings.inter_broker_listener, look_up
    )


def look_up(host: str, found: Callable[[Sequence[str]], None]) -> None:
    """Ask the system for the addresses of a host; on another thread if a loop is running."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        found(addresses(host))
        return
    looking = loop.run_in_executor(None, addresses, host)
    looking.add_done_callback(lambda done: None if done.cancelled() else found(done.result()))


def addresses(host: str) -> list[str]:
    """The addresses of a host; blocks. None if it has none."""
    try:
        return [str(row[4][0]) for row in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []


def enforce(quotas: ConnectionQuotas, listeners: Sequence[Listener], clock: Clock, timer: Timer) -> None:
    """Close connections when there are too many, and forget addresses that did not come for an hour."""
    quotas.over_limit = lambda: displace(quotas, listeners)
    forget_idle(quotas, clock, timer)


def displace(quotas: ConnectionQuotas, listeners: Sequence[Listener]) -> None:
    """Close the connections that are beyond the broker's limit: those that are being closed anyway, then the
    least recently used. Those of the inter-broker listener stay.
    """
    candidates = (
        channel
        for listener in listeners
        if not quotas.is_protected(listener.address.name)
        for channel in listener.channels
    )
    for channel in heapq.nsmallest(
        quotas.excess, candidates, key=lambda channel: (not channel.closing, channel.last_active_ms)
    ):
        channel.abort()
