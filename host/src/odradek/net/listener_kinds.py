"""Listeners of the kind that their security protocol needs.

Modules of TLS and SASL are imported where a listener needs them, so that hosts without them start faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from odradek.net.listener import Listener, ListenerAddress
from odradek.net.listener_settings import WITH_SASL
from odradek.net.unauthenticated import Unauthenticated
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.security.sasl_settings import SaslSettings
from odradek.waiting.clock import Clock, Timer

if TYPE_CHECKING:
    from odradek.broker.audit import Audit
    from odradek.broker.broker import Broker
    from odradek.net.authentications import Authentications
    from odradek.net.handshakes import Handshakes
    from odradek.net.listener_tls import ListenerTls


def listener_kind(
    authentications: Authentications, broker: Broker, tls: Mapping[str, ListenerTls]
) -> Callable[[ListenerAddress], Callable[..., Listener]]:
    """Makes listeners of the kind that their security protocol needs.

    Args:
        authentications: Makes the authentication of each SASL listener, and the principals.
        broker: Knows the connections that have not authenticated.
        tls: By name, TLS of the listeners that have it.
    """
    unauthenticated = strangers(authentications.config.sasl, broker.connection_quotas, broker.timer)
    secured = handshakes_of(tls, unauthenticated, broker.audit, broker.clock)

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


def strangers(settings: SaslSettings, quotas: ConnectionQuotas, timer: Timer) -> Unauthenticated:
    """The bound for connections that have not authenticated, or not finished their TLS handshake."""
    return Unauthenticated(
        min(settings.most_unauthenticated, max(quotas.descriptors.connections // 2, 1)),
        settings.max_unauthenticated_ms,
        quotas.clock,
        timer,
    )


def handshakes_of(
    tls: Mapping[str, ListenerTls], unauthenticated: Unauthenticated, audit: Audit, clock: Clock
) -> Mapping[str, Handshakes]:
    """The handshakes of each listener with TLS; all of them share the loop."""
    if not tls:
        return {}
    from odradek.net.handshakes import HandshakePace, Handshakes

    pace = HandshakePace()
    return {
        name: Handshakes(each, unauthenticated, pace, clock, audit.login_refused)
        for name, each in tls.items()
    }
