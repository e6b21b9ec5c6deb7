"""Listeners of the kind that their security protocol needs.

Modules of TLS and SASL are imported where a listener needs them, so that hosts without them start faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.net.authentications import Authentications
from odradek.net.listener import Listener, ListenerAddress
from odradek.net.listener_settings import WITH_SASL
from odradek.net.unauthenticated import Unauthenticated

if TYPE_CHECKING:
    from odradek.broker.broker import Broker
    from odradek.net.handshakes import Handshakes
    from odradek.net.listener_tls import ListenerTls

    ListenerKinds = Callable[
        [Authentications, Dispatcher, Mapping[str, ListenerTls]],
        Callable[[ListenerAddress], Callable[..., Listener]],
    ]
    """Makes listeners of the kind that their settings demand: `listener_kind` for a host."""


def listener_kind(
    authentications: Authentications, dispatcher: Dispatcher, tls: Mapping[str, ListenerTls]
) -> Callable[[ListenerAddress], Callable[..., Listener]]:
    """Makes listeners of the kind that their security protocol needs.

    Args:
        authentications: Makes the authentication of each SASL listener, and the principals.
        dispatcher: Answers the clients that have authenticated.
        tls: By name, TLS of the listeners that have it.
    """
    broker = dispatcher.broker
    unauthenticated = strangers(authentications, broker)
    secured = handshakes_of(tls, unauthenticated, broker) if tls else {}

    def kind(address: ListenerAddress) -> Callable[..., Listener]:
        found: Callable[..., Listener] = partial(Listener, principals=authentications.principals)
        if address.security_protocol in WITH_SASL:
            from odradek.net.sasl_listener import SaslListener

            found = partial(
                SaslListener,
                authentication=authentications.of(address.name),
                authenticators=broker.authenticators,
                unauthenticated=unauthenticated,
            )
        if address.name in secured:
            found = partial(found, handshakes=secured[address.name])
        return found

    return kind


def strangers(authentications: Authentications, broker: Broker) -> Unauthenticated:
    """The bound for connections that have not authenticated, or not finished their TLS handshake."""
    settings = authentications.config.sasl
    return Unauthenticated(
        min(settings.most_unauthenticated, max(broker.connection_quotas.descriptors.connections // 2, 1)),
        settings.max_unauthenticated_ms,
        broker.clock,
        broker.timer,
    )


def handshakes_of(
    tls: Mapping[str, ListenerTls], unauthenticated: Unauthenticated, broker: Broker
) -> Mapping[str, Handshakes]:
    """The handshakes of each listener with TLS; all of them share the loop."""
    from odradek.net.handshakes import HandshakePace, Handshakes

    pace = HandshakePace()
    report = broker.audit.login_refused
    return {name: Handshakes(each, unauthenticated, pace, broker.clock, report) for name, each in tls.items()}
