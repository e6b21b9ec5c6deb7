"""Settings that limit connections; names, defaults and checks after SocketServerConfigs and KafkaConfig."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import INT, Special, Whole
from odradek.settings.listener_values import base_of, declaration_of, listener_key
from odradek.settings.reading import by_key, changed
from odradek.settings.setting import Scope, Setting, setting
from odradek.wire.config_resource import ConfigType
from odradek.wire.limits import INT32_MAX

MAX_CONNECTIONS = "max.connections"
MAX_CONNECTIONS_PER_IP = "max.connections.per.ip"
MAX_CONNECTIONS_PER_IP_OVERRIDES = "max.connections.per.ip.overrides"
MAX_CONNECTION_CREATION_RATE = "max.connection.creation.rate"
HOST = re.compile(r"[0-9a-zA-Z\-%._:]+")
"""Utils.validHostPattern"""


def parse_overrides(text: str) -> dict[str, int]:
    """Return the count of each host of ``host:count`` pairs with commas.

    The count follows the last colon, because an IPv6 address contains colons.

    Raises:
        ValueError: A pair is not of this form.
    """
    overrides = {}
    for pair in filter(None, (pair.strip() for pair in text.split(","))):
        host, _, count = pair.rpartition(":")
        if HOST.fullmatch(host.strip()) is None or not re.fullmatch(r"\s*[0-9]{1,10}\s*", count):
            raise ValueError(f"expected HOST:COUNT with commas, found {pair!r}")
        if int(count) > INT32_MAX:
            raise ValueError(f"expected a whole number from 0 to {INT32_MAX}, found {count!r}")
        overrides[host.strip()] = int(count)
    return overrides


def read_overrides(table: PluginConfig, key: str) -> dict[str, int]:
    """Return the overrides of a configuration file.

    Raises:
        ConfigError: A pair is not of the form HOST:COUNT.
    """
    try:
        return parse_overrides(",".join(table.texts(key)))
    except ValueError as error:
        raise table.error(key, str(error)) from None


OVERRIDES = Special(
    type=ConfigType.STRING,
    shape="list",
    read=read_overrides,
    parse=parse_overrides,
    text=lambda overrides: ",".join(f"{host}:{count}" for host, count in overrides.items()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The connection limits in force."""

    # fmt: off
    max_connections: int = setting(
        MAX_CONNECTIONS, Whole(INT), INT32_MAX,
        "Limit of open connections to the whole host; further ones wait to be accepted until another one is "
        "closed. Never more than the process's limit of open files leaves.", unit="connections",
        scope=Scope.BROKER, by_listener=True, unset="what the limit of open files leaves",
    )
    max_connections_per_ip: int = setting(
        MAX_CONNECTIONS_PER_IP, Whole(INT), INT32_MAX,
        "Limit of open connections from one address; further ones are closed. 0 is allowed only with "
        "overrides.", unit="connections", scope=Scope.BROKER,
    )
    overrides: Mapping[str, int] = setting(
        MAX_CONNECTIONS_PER_IP_OVERRIDES, OVERRIDES, {},
        "Limits of single hosts, as `HOST:COUNT`; a host name stands for all its addresses.",
        scope=Scope.BROKER, unset="none",
    )
    """By host, a name or an address."""
    creation_rate: int = setting(
        MAX_CONNECTION_CREATION_RATE, Whole(INT), INT32_MAX,
        "Limit of new connections per second to the whole host; further ones wait to be accepted.",
        unit="connections/s", scope=Scope.BROKER, by_listener=True,
    )
    # fmt: on
    by_listener: Mapping[str, int] = field(default_factory=dict)
    """Limits of single listeners, by full key."""

    def listener_connections(self, listener: str) -> int:
        """The limit of open connections of a listener."""
        return self.by_listener.get(listener_key(listener, MAX_CONNECTIONS), self.max_connections)

    def listener_creation_rate(self, listener: str) -> int:
        """The limit of new connections per second of a listener."""
        return self.by_listener.get(listener_key(listener, MAX_CONNECTION_CREATION_RATE), self.creation_rate)

    @property
    def lacks_overrides(self) -> bool:
        """Whether no address could connect; Kafka refuses such limits."""
        return self.max_connections_per_ip == 0 and not self.overrides

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            ConfigError: No address could connect.
        """
        for key, limit in self.by_listener.items():
            if limit == 0:
                raise ConfigError(key, f"expected a whole number from 1 to {INT32_MAX}, found 0")
        if self.lacks_overrides:
            raise ConfigError(
                MAX_CONNECTIONS_PER_IP, f"can only be 0 if {MAX_CONNECTIONS_PER_IP_OVERRIDES} is set"
            )

    def changed(self, texts: Mapping[str, str]) -> ConnectionLimits:
        """Return a copy with some limits changed.

        Args:
            texts: Values by key, with the prefix of a listener or without.

        Raises:
            ConfigError: A key is unknown, a value is wrong, or no address could connect.
        """
        own: dict[str, str] = {}
        by_listener = dict(self.by_listener)
        for key, text in texts.items():
            if key in CONNECTION_KEYS:
                own[key] = text
            else:
                by_listener[key] = positive_limit(key, text)
        limits = replace(changed(self, own), by_listener=by_listener)
        limits.check()
        return limits


CONNECTION_KEYS = {key: each for key, (_, each) in by_key(ConnectionLimits).items()}
"""The declarations, by key."""


def connection_setting(key: str) -> Setting | None:
    """The declaration of a limit, with a listener's prefix or without; None for other keys."""
    return declaration_of(key, CONNECTION_KEYS)


def positive_limit(key: str, text: str) -> int:
    """Return a limit that is changed at run time, of the host or of one listener.

    Raises:
        ConfigError: The key is unknown, or the value is wrong; 0 is not allowed here.
    """
    found = connection_setting(key)
    if found is None:
        raise ConfigError(key, "is not a connection limit")
    value: int = found.parse(text)
    if value == 0:
        raise ConfigError(
            key,
            f"Invalid value org.apache.kafka.common.config.ConfigException: Invalid {base_of(key)} 0 for "
            "configuration Invalid dynamic configuration",
        )
    return value
