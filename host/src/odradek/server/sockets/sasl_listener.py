"""A listener whose clients authenticate before any other request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from odradek.broker.dispatch.authentication_gate import AuthenticationGate
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.plugin.context import ConnectionContext
from odradek.security.sasl_authentication import SaslAuthentication
from odradek.security.sasl_authenticator import SaslAuthenticator
from odradek.security.sasl_settings import SaslSettings
from odradek.server.sockets.authentications import Authentications
from odradek.server.sockets.channel import Channel
from odradek.server.sockets.listener import Listener, ListenerAddress
from odradek.server.sockets.listener_settings import SASL_PLAINTEXT
from odradek.server.sockets.unauthenticated import Unauthenticated


class SaslListener(Listener):
    """Puts an `AuthenticationGate` in the dispatcher's place until a connection has authenticated, and again
    when its session is over.

    Otherwise the connection costs the same as on any listener: no request asks how old the session is.
    """

    def __init__(
        self,
        *args: Any,
        authentication: SaslAuthentication,
        authenticators: dict[str, SaslAuthenticator],
        unauthenticated: Unauthenticated,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.authentication = authentication
        self.authenticators = authenticators
        """The broker's: by connection id, connections that have not authenticated yet or will do so again."""
        self.unauthenticated = unauthenticated
        """The connections that have not authenticated yet; those of all SASL listeners of the host."""

    def opened(self, channel: Channel, transport: asyncio.Transport) -> ConnectionContext:
        """A channel has its transport: put the gate before the dispatcher."""
        connection = super().opened(channel, transport)
        self.authenticators[connection.connection_id] = SaslAuthenticator(
            self.authentication,
            connection,
            let_in=partial(self.let_in, channel, connection.connection_id),
            guard=partial(self.guard, channel, connection.connection_id),
            close=channel.close,
        )
        self.unauthenticated.add(channel)
        self.guard(channel, connection.connection_id)
        return connection

    def guard(self, channel: Channel, connection_id: str) -> None:
        """Let only requests of an authentication pass."""
        channel.answer = AuthenticationGate(self.authenticators[connection_id], self.dispatcher).answer
        limit_bytes = self.authentication.settings.server_max_receive_bytes
        channel.max_request_bytes = min(self.max_request_bytes, limit_bytes)

    def let_in(self, channel: Channel, connection_id: str) -> None:
        """The client has authenticated: remove the gate. If it need not do so again, the channel and its
        authenticator no longer hold each other.
        """
        self.unauthenticated.remove(channel)
        channel.answer = self.dispatcher.answer
        channel.max_request_bytes = self.max_request_bytes
        if not self.authenticators[connection_id].again:
            del self.authenticators[connection_id]

    def closed(self, channel: Channel) -> None:
        """The connection is gone, perhaps before it authenticated."""
        authenticator = self.authenticators.pop(channel.context.connection_id, None)
        if authenticator is not None:
            authenticator.leave()
            self.unauthenticated.remove(channel)
            channel.answer = self.dispatcher.answer
        super().closed(channel)


def listener_kind(
    authentications: Authentications, settings: SaslSettings, dispatcher: Dispatcher
) -> Callable[[ListenerAddress], Callable[..., Listener]]:
    """Makes listeners of the kind that their security protocol needs.

    Args:
        authentications: Makes the authentication of each SASL listener.
        settings: The limits of all SASL listeners together.
        dispatcher: Answers the clients that have authenticated.
    """
    broker = dispatcher.broker
    unauthenticated = Unauthenticated(
        min(settings.most_unauthenticated, max(broker.connection_quotas.descriptors.connections // 2, 1)),
        settings.max_unauthenticated_ms,
        broker.clock,
        broker.timer,
    )

    def kind(address: ListenerAddress) -> Callable[..., Listener]:
        if address.security_protocol != SASL_PLAINTEXT:
            return Listener
        return partial(
            SaslListener,
            authentication=authentications.of(address.name),
            authenticators=broker.authenticators,
            unauthenticated=unauthenticated,
        )

    return kind
