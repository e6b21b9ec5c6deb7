"""The listeners of a gateway, made instead of a host's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.plugin.config import ConfigError
from odradek.server.config import HostConfig
from odradek.server.gateway.certificate_names import check_covers
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
        ConfigError: There are several, or one of them ends SASL.
    """
    if len(config.listeners) != 1:
        problem = f"expected one listener, because each node id has one port, found {len(config.listeners)}"
        raise ConfigError(LISTENERS, problem)
    address = config.listeners[0]
    if address.security_protocol in WITH_SASL:
        raise ConfigError(
            LISTENERS,
            f"expected PLAINTEXT or SSL, found {address.security_protocol}: SASL passes through a gateway to "
            "the brokers",
        )


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
            found: Callable[..., Listener] = partial(GatewayListener, gateway=gateway, advertised_host=host)
            if address.name in secured:
                check_covers(tls[address.name].loaded.certificate, host, address.name)
                found = partial(found, handshakes=secured[address.name])
            return found

        return kind

    return kinds
