"""The settings of connection limits; names, defaults and checks after SocketServerConfigs and KafkaConfig.

They are kept as the texts of the configuration, so that one that is removed at run time falls back to the
file's, and a listener's to the broker's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.plugin.config import ConfigError
from odradek.quota.quota_config import MAX_INT

MAX_CONNECTIONS = "max.connections"
MAX_CONNECTIONS_PER_IP = "max.connections.per.ip"
MAX_CONNECTIONS_PER_IP_OVERRIDES = "max.connections.per.ip.overrides"
MAX_CONNECTION_CREATION_RATE = "max.connection.creation.rate"
BROKER_KEYS = (
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    MAX_CONNECTION_CREATION_RATE,
)
LISTENER_KEYS = (MAX_CONNECTIONS, MAX_CONNECTION_CREATION_RATE)
"""Those that a listener may have for itself, behind ``listener.name.<name in lower case>.``."""
LISTENER_KEY = re.compile(r"listener\.name\.[^.]+\.(max\.connections|max\.connection\.creation\.rate)")
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
HOST = re.compile(r"[0-9a-zA-Z\-%._:]+")
"""Utils.validHostPattern"""


def listener_key(listener: str, key: str) -> str:
    """The key of one listener."""
    return f"listener.name.{listener.lower()}.{key}"


def is_connection_key(key: str) -> bool:
    """Whether it is one of the settings here, with a listener's prefix or without."""
    return key in BROKER_KEYS or LISTENER_KEY.fullmatch(key) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What holds at one moment. `parse_limits` makes it."""

    max_connections: int = MAX_INT
    max_connections_per_ip: int = MAX_INT
    overrides: Mapping[str, int] = field(default_factory=dict)
    """``max.connections.per.ip.overrides`` by host, a name or an address."""
    creation_rate: int = MAX_INT
    """Connections per second."""
    by_listener: Mapping[str, int] = field(default_factory=dict)
    """The settings of listeners by their whole key."""

    def listener_connections(self, listener: str) -> int:
        """The most that a listener may have."""
        return self.by_listener.get(listener_key(listener, MAX_CONNECTIONS), self.max_connections)

    def listener_creation_rate(self, listener: str) -> int:
        """Connections per second of a listener."""
        return self.by_listener.get(listener_key(listener, MAX_CONNECTION_CREATION_RATE), self.creation_rate)


def parse_limits(properties: Mapping[str, str]) -> ConnectionLimits:
    """The checked limits.

    Raises:
        ConfigError: A key is none of these, or a value is wrong. A limit of a listener may not be 0, that of
            addresses only with overrides.
    """
    unknown = [key for key in properties if not is_connection_key(key)]
    if unknown:
        raise ConfigError(unknown[0], "is no limit of connections")
    overrides = parse_overrides(properties.get(MAX_CONNECTIONS_PER_IP_OVERRIDES, ""))
    per_ip = number(properties, MAX_CONNECTIONS_PER_IP, 0)
    if per_ip == 0 and not overrides:
        raise ConfigError(
            MAX_CONNECTIONS_PER_IP, f"can only be 0 if {MAX_CONNECTIONS_PER_IP_OVERRIDES} is set"
        )
    return ConnectionLimits(
        max_connections=number(properties, MAX_CONNECTIONS, 0),
        max_connections_per_ip=per_ip,
        overrides=overrides,
        creation_rate=number(properties, MAX_CONNECTION_CREATION_RATE, 0),
        by_listener={key: number(properties, key, 1) for key in properties if key not in BROKER_KEYS},
    )


def number(properties: Mapping[str, str], key: str, least: int) -> int:
    """The number that is set, or the largest."""
    return whole_number(key, properties[key], least) if key in properties else MAX_INT


def whole_number(key: str, text: str, least: int) -> int:
    """A number in ``least..MAX_INT``."""
    if not WHOLE_NUMBER.fullmatch(text.strip()) or not least <= int(text) <= MAX_INT:
        raise ConfigError(key, f"expected a whole number from {least} to {MAX_INT}, found {text!r}")
    return int(text)


def parse_overrides(text: str) -> dict[str, int]:
    """``host:count`` pairs with commas. What is behind the last colon is the count: IPv6 has some too."""
    overrides = {}
    for pair in filter(None, (pair.strip() for pair in text.split(","))):
        host, _, count = pair.rpartition(":")
        host = host.strip()
        if HOST.fullmatch(host) is None:
            raise ConfigError(
                MAX_CONNECTIONS_PER_IP_OVERRIDES, f"expected HOST:COUNT with commas, found {pair!r}"
            )
        overrides[host] = number(
            {MAX_CONNECTIONS_PER_IP_OVERRIDES: count}, MAX_CONNECTIONS_PER_IP_OVERRIDES, 0
        )
    return overrides
