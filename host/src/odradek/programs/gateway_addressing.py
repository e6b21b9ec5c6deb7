"""The addresses of each listener of a gateway, from the settings; a contradiction stops the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odradek.broker.broker_settings import Endpoint
from odradek.gateway.addresses import NamePerNode, NodeTable, PortPerNode, UnmappedNodes
from odradek.gateway.addressing_settings import (
    ADVERTISED_PORT_START,
    NODE_NAMES,
    PORT_START,
    AddressingSettings,
    check_range,
)
from odradek.gateway.gateway_settings import UPSTREAM
from odradek.gateway.node_names import NodeNames, is_host_name
from odradek.net.listener import ListenerAddress
from odradek.net.listener_settings import ADVERTISED, EVERY_ADDRESS, WITH_TLS
from odradek.net.pairs.routing import NameRouting, PortRouting, Routing, first_port
from odradek.plugin.config import ConfigError
from odradek.programs.config import HostConfig
from odradek.settings.listener_values import listener_key

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def routings_of(config: HostConfig, table: NodeTable, unmapped: UnmappedNodes) -> dict[str, Routing]:
    """Decide for each listener how its clients choose a node, by the listener's name.

    Raises:
        ConfigError: The settings contradict each other, or two listeners need the same port.
    """
    found: dict[str, Routing] = {}
    taken: list[tuple[ListenerAddress, range]] = []
    for address in config.listeners:
        routing = found[address.name] = routing_of(config, address, table, unmapped)
        settings = routing.settings
        start = first_port(address, settings) if settings.names is None else 0
        ports = range(start, start + len(settings.mapped)) if start else range(0)
        for other, theirs in taken:
            if other.host == address.host and (
                set(ports) & {*theirs, other.port} or (address.port and address.port in theirs)
            ):
                problem = f"{address} and {other} need the same ports for the nodes {settings}; choose others"
                raise ConfigError(listener_key(address.name, PORT_START), problem)
        taken.append((address, ports))
    return found


def routing_of(
    config: HostConfig, address: ListenerAddress, table: NodeTable, unmapped: UnmappedNodes
) -> Routing:
    """Decide how the clients of a listener choose a node.

    Args:
        config: The configuration.
        address: The listener.
        table: The addresses of the brokers.
        unmapped: Counts the brokers without an address of the gateway.

    Raises:
        ConfigError: The settings contradict each other.
    """
    settings = config.of_listener(config.gateway.addressing, address.name)
    advertised = advertised_endpoint(config, address)
    if settings.names is None:
        check_ports(config, address, settings, advertised)
        ports = PortPerNode(settings.mapped, table, unmapped, advertised.host)
        return PortRouting(settings, ports, config.gateway.reuse_port)
    check_names(config, address, settings.names, advertised)
    addresses = NamePerNode(settings.mapped, table, unmapped, settings.names)
    return NameRouting(settings, addresses, advertised)


def advertised_endpoint(config: HostConfig, address: ListenerAddress) -> Endpoint:
    """The bootstrap address that clients dial; port 0 if it is the one that will be bound."""
    named = config.advertised.get(address.name)
    if named is None:
        return Endpoint(address.host or "localhost", address.port)
    return named


def check_ports(
    config: HostConfig, address: ListenerAddress, settings: AddressingSettings, advertised: Endpoint
) -> None:
    """Check that the ports of the nodes are different from the bootstrap port, as bound and as advertised.

    Raises:
        ConfigError: They are not, or there are not enough.
    """
    number = len(settings.mapped)
    bound = first_port(address, settings)
    key = own_key(config, address, PORT_START)
    check_range(key, number, bound)
    check_apart(key, bound, number, address.port)
    if settings.advertised_port_start is not None:
        key = own_key(config, address, ADVERTISED_PORT_START)
    check_apart(key, settings.advertised_port_start or bound, number, advertised.port)


def check_apart(key: str, start: int, number: int, bootstrap: int) -> None:
    """Check that the bootstrap port is not the port of a node.

    Raises:
        ConfigError: It is.
    """
    if start and bootstrap and start <= bootstrap < start + number:
        raise ConfigError(
            key,
            f"the ports {start} to {start + number - 1} of the nodes include {bootstrap}, the port of the "
            "bootstrap address",
        )


def check_names(config: HostConfig, address: ListenerAddress, names: NodeNames, advertised: Endpoint) -> None:
    """Check that clients can name each node, and the bootstrap address, in TLS.

    Raises:
        ConfigError: They cannot.
    """
    key = own_key(config, address, NODE_NAMES)
    if address.security_protocol not in WITH_TLS:
        raise ConfigError(
            key,
            f"needs a listener with TLS, because the name is part of its handshake; {address} has the "
            f"protocol {address.security_protocol}",
        )
    if not is_host_name(advertised.host):
        raise ConfigError(
            ADVERTISED,
            f"expected a host name for listener {address.name}, because clients name no server in TLS "
            f"when they dial an address; found {advertised.host!r}",
        )
    node_id = names.node_id(advertised.host)
    if node_id is not None:
        raise ConfigError(
            key, f"the bootstrap address {advertised.host!r} is also the name of node {node_id}"
        )


def own_key(config: HostConfig, address: ListenerAddress, key: str) -> str:
    """The key whose value applies to a listener."""
    own = listener_key(address.name, key)
    return own if own in config.listener_values else key


def check_upstream(config: HostConfig, upstream: Sequence[tuple[str, int]]) -> None:
    """Check that the gateway does not pass connections to itself.

    Raises:
        ConfigError: It does.
    """
    for address in config.listeners:
        here = {address.host}
        if address.host in (*EVERY_ADDRESS, "localhost"):
            here.update(LOOPBACK)
        elif address.host in LOOPBACK:
            here.add("localhost")
        for host, port in upstream:
            if port == address.port and host in here:
                problem = f"{host}:{port} is the address of this gateway's listener {address.name}"
                raise ConfigError(UPSTREAM, f"expected brokers of the cluster, but {problem}")
