"""The shared state of a gateway and its listeners, made from the configuration."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.gateway.data_path import TELEMETRY_HEADER_BYTES, PathLimits
from odradek.gateway.gateway_settings import REUSE_PORT
from odradek.gateway.rewriting.rewriter import HoldLimits
from odradek.net.authentications import Authentications
from odradek.net.listener import Listener, ListenerAddress
from odradek.net.listener_kinds import handshakes_of, strangers
from odradek.net.listener_settings import LISTENERS, WITH_SASL
from odradek.net.pairs.client_side import GatewayListener
from odradek.net.pairs.dialer import Address
from odradek.net.pairs.gateway import Gateway
from odradek.plugin.config import ConfigError
from odradek.programs.config import HostConfig
from odradek.programs.gateway_addressing import check_upstream, routings_of
from odradek.waiting.clock import Clock

if TYPE_CHECKING:
    from odradek.net.listener_kinds import ListenerKinds
    from odradek.net.listener_tls import ListenerTls


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


def gateway_of(
    config: HostConfig,
    upstream: Sequence[Address],
    tls: ssl.SSLContext | None,
    requires_sasl: bool,
    clock: Clock,
) -> Gateway:
    """The shared state of a gateway's listeners and pairs; see `Gateway`.

    Raises:
        ConfigError: The settings of the addresses contradict each other, or the gateway would dial itself.
    """
    check_upstream(config, upstream)
    settings = config.gateway
    limits = PathLimits(
        max_request_bytes=config.socket_request_max_bytes,
        max_push_bytes=config.telemetry.telemetry_max_bytes + TELEMETRY_HEADER_BYTES,
        most_in_flight=settings.most_in_flight,
        hold=HoldLimits(response_bytes=settings.hold_bytes),
    )
    routings = partial(routings_of, config)
    return Gateway(
        settings, limits, routings, upstream, tls, requires_sasl, config.oauth.subject_claim, clock
    )


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
