"""Listeners of the kind that their security protocol needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.server.sockets.authentications import Authentications
from odradek.server.sockets.handshakes import HandshakePace, Handshakes
from odradek.server.sockets.listener import Listener, ListenerAddress
from odradek.server.sockets.listener_settings import WITH_SASL
from odradek.server.sockets.listener_tls import ListenerTls
from odradek.server.sockets.sasl_listener import SaslListener
from odradek.server.sockets.unauthenticated import Unauthenticated


def listener_kind(
    authentications: Authentications, dispatcher: Dispatcher, tls: Mapping[str, ListenerTls]
) -> Callable[[ListenerAddress], Callable[..., Listener]]:
    """Makes listeners of the kind that their security protocol needs.

    Args:
        authentications: Makes the authentication of each SASL listener, and the principals.
        dispatcher: Answers the clients that have authenticated.
        tls: By name, TLS of the listeners that have it.
    """
    broker, settings = dispatcher.broker, authentications.config.sasl
    unauthenticated = Unauthenticated(
        min(settings.most_unauthenticated, max(broker.connection_quotas.descriptors.connections // 2, 1)),
        settings.max_unauthenticated_ms,
        broker.clock,
        broker.timer,
    )
    pace = HandshakePace()

    def kind(address: ListenerAddress) -> Callable[..., Listener]:
        found: Callable[..., Listener] = partial(Listener, principals=authentications.principals)
        if address.security_protocol in WITH_SASL:
            found = partial(
                SaslListener,
                authentication=authentications.of(address.name),
                authenticators=broker.authenticators,
                unauthenticated=unauthenticated,
            )
        if address.name in tls:
            handshakes = Handshakes(tls[address.name], unauthenticated, pace, broker.clock)
            found = partial(found, handshakes=handshakes)
        return found

    return kind
