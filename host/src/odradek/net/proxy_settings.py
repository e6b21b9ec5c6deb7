"""The settings of listeners that load balancers connect to."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import INT, Choice, Special, Whole
from odradek.settings.setting import setting
from odradek.wire.config_resource import ConfigType

PROTOCOL, TRUSTED = "proxy.protocol", "proxy.protocol.trusted"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def read_networks(table: PluginConfig, key: str) -> tuple[Network, ...]:
    """Return networks.

    Raises:
        ConfigError: A text is not an address or a network.
    """
    networks = []
    for text in table.texts(key):
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError as error:
            raise table.error(key, f"expected addresses or networks like 10.0.0.0/8: {error}") from None
    return tuple(networks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """The load balancers of a listener."""

    # fmt: off
    is_required: bool = setting(
        PROTOCOL, Choice({"none": False, "required": True}), False,
        "With `required`, each connection begins with a header of the PROXY protocol, version 1 or 2, which "
        "has the address of its client.",
        by_listener=True,
    )
    trusted: tuple[Network, ...] = setting(
        TRUSTED, Special(type=ConfigType.LIST, shape="list", read=read_networks), (),
        "Addresses and networks of the load balancers; other connections to a listener that requires a "
        "header are closed.", unset="none", by_listener=True,
    )
    timeout_ms: int = setting(
        "proxy.protocol.timeout.ms", Whole(INT, 1), 3_000, "Time for the header to arrive.", unit="ms",
        by_listener=True,
    )
    most_waiting: int = setting(
        "proxy.protocol.waiting.max", Whole(INT, 1), 200,
        "Connections of one load balancer whose header has not arrived; further ones are closed.",
        unit="connections", by_listener=True,
    )
    # fmt: on

    def check(self) -> None:
        """Check that somebody may connect.

        Raises:
            ConfigError: The header is required, but no load balancer is trusted.
        """
        if self.is_required and not self.trusted:
            problem = f"expected the networks of the load balancers, because {PROTOCOL} is required"
            raise ConfigError(TRUSTED, problem)

    def trusts(self, address: str) -> bool:
        """Whether a load balancer has this address."""
        found = ipaddress.ip_address(address)
        return any(found in network for network in self.trusted)
