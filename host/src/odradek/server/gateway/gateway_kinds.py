"""The listeners of a gateway, made instead of a host's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.gateway.gateway_settings import REUSE_PORT
from odradek.plugin.config import ConfigError
from odradek.server.config import HostConfig
from odradek.server.gateway.gateway import Gateway
from odradek.server.gateway.gateway_listener import GatewayListener
from odradek.server.sockets.authentications import Authentications
from odradek.server.sockets.listener import Listener, ListenerAddress
from odradek.server.sockets.listener_kinds import handshakes_of, strangers
from odradek.server.sockets.listener_settings import LISTENERS, WITH_SASL

if TYPE_CHECKING:
    from odradek.server.sockets.listener_kinds import ListenerKinds
    from odradek.server.sockets.listener_tls import ListenerTls


def check_listeners(config: HostConfig) -> None:
    """Check that the listeners are a gateway's.

    Raises:
        ConfigError: One of them ends SASL, or shares a port that is not known.
    """
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


def gateway_kinds(gateway: Gateway) -> ListenerKinds:
    """Makes the listeners of a gateway, which share its state."""

    def kinds(
        authentications: Authentications, dispatcher: Dispatcher, tls: Mapping[str, ListenerTls]
    ) -> Callable[[ListenerAddress], Callable[..., Listener]]:
        broker = dispatcher.broker
        secured = handshakes_of(tls, strangers(authentications, broker), broker) if tls else {}

        def kind(address: ListenerAddress) -> Callable[..., Listener]:
            routing = gateway.routings[address.name]
            found: Callable[..., Listener] = partial(GatewayListener, gateway=gateway, routing=routing)
            if address.name in secured:
                routing.secure(tls[address.name])
                found = partial(found, handshakes=secured[address.name])
            return found

        return kind

    return kinds
