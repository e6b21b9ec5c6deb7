"""The listeners of a gateway, made instead of a host's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.gateway.gateway_settings import PORT_START, REUSE_PORT, nodes_text
from odradek.plugin.config import ConfigError
from odradek.server.config import HostConfig
from odradek.server.gateway.certificate_names import check_covers
from odradek.server.gateway.gateway import Gateway
from odradek.server.gateway.gateway_listener import GatewayListener, first_port
from odradek.server.sockets.authentications import Authentications
from odradek.server.sockets.listener import Listener, ListenerAddress
from odradek.server.sockets.listener_kinds import handshakes_of, strangers
from odradek.server.sockets.listener_settings import LISTENERS, WITH_SASL
from odradek.settings.listener_values import listener_key

if TYPE_CHECKING:
    from odradek.server.sockets.listener_kinds import ListenerKinds
    from odradek.server.sockets.listener_tls import ListenerTls


def check_listeners(config: HostConfig) -> None:
    """Check that the listeners are a gateway's.

    Raises:
        ConfigError: One of them ends SASL, or two need the same port.
    """
    taken: list[tuple[ListenerAddress, range]] = []
    for address in config.listeners:
        if address.security_protocol in WITH_SASL:
            raise ConfigError(
                LISTENERS,
                f"expected PLAINTEXT or SSL, found {address.security_protocol}: SASL passes through a "
                "gateway to the brokers",
            )
        if config.gateway.reuse_port and not address.port:
            problem = f"expected a port for {address}, because processes can only share a known one"
            raise ConfigError(REUSE_PORT, problem)
        check_ports(config, address, taken)


def check_ports(
    config: HostConfig, address: ListenerAddress, taken: list[tuple[ListenerAddress, range]]
) -> None:
    """Check that the ports of a listener's nodes are not those of another listener, and add them.

    Raises:
        ConfigError: They are.
    """
    settings = config.of_listener(config.gateway, address.name)
    start = first_port(address, settings)
    ports = range(start, start + len(settings.nodes)) if start else range(0)
    for other, theirs in taken:
        if other.host == address.host and (
            set(ports) & {*theirs, other.port} or (address.port and address.port in theirs)
        ):
            key = listener_key(address.name, PORT_START)
            problem = f"{address} and {other} need the same ports for the nodes {nodes_text(settings.nodes)}"
            raise ConfigError(key, f"{problem}; choose others")
    taken.append((address, ports))


def advertised_host(config: HostConfig, address: ListenerAddress) -> str:
    """The host name that clients dial."""
    named = config.advertised.get(address.name)
    return named.host if named is not None else address.host or "localhost"


def gateway_kinds(config: HostConfig, gateway: Gateway) -> ListenerKinds:
    """Makes the listeners of a gateway.

    Args:
        config: Its configuration, which `check_listeners` has accepted.
        gateway: What they share.
    """

    def kinds(
        authentications: Authentications, dispatcher: Dispatcher, tls: Mapping[str, ListenerTls]
    ) -> Callable[[ListenerAddress], Callable[..., Listener]]:
        broker = dispatcher.broker
        secured = handshakes_of(tls, strangers(authentications, broker), broker) if tls else {}

        def kind(address: ListenerAddress) -> Callable[..., Listener]:
            host = advertised_host(config, address)
            settings = config.of_listener(config.gateway, address.name)
            found: Callable[..., Listener] = partial(
                GatewayListener, gateway=gateway, settings=settings, advertised_host=host
            )
            if address.name in secured:
                check_covers(tls[address.name].loaded.certificate, host, address.name)
                found = partial(found, handshakes=secured[address.name])
            return found

        return kind

    return kinds
