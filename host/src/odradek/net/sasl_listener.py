"""A listener whose clients authenticate before any other request."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from odradek.broker.dispatch.authentication_gate import AuthenticationGate
from odradek.net.channel import Channel
from odradek.net.listener import Listener
from odradek.net.unauthenticated import Unauthenticated
from odradek.plugin.context import ConnectionContext
from odradek.security.sasl_authentication import SaslAuthentication
from odradek.security.sasl_authenticator import SaslAuthenticator


class SaslListener(Listener):
    """Puts an `AuthenticationGate` in the dispatcher's place until a connection has authenticated, and again
    when its session is over.

    Otherwise the connection costs the same as on any listener: no request asks how old the session is.
    """

    authentication: SaslAuthentication
    unauthenticated: Unauthenticated

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
        self.counts = authentication.counts
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

    def name_client(self, *_: Any) -> None:
        """Nothing: the principal comes from SASL, also if the client has a certificate."""

    def guard(self, channel: Channel, connection_id: str) -> None:
        """Let only requests of an authentication pass.

        A client that has authenticated before is no stranger: its requests may have any size, and the gate
        says why one is refused.
        """
        authenticator = self.authenticators[connection_id]
        channel.answer = AuthenticationGate(authenticator, self.dispatcher).answer
        if not authenticator.again:
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

    def closed(self, channel: Channel, in_order: bool) -> None:
        """The connection is gone, perhaps before it authenticated."""
        authenticator = self.authenticators.pop(channel.context.connection_id, None)
        if authenticator is not None:
            authenticator.leave()
            self.unauthenticated.remove(channel)
            channel.answer = self.dispatcher.answer
        super().closed(channel, in_order)
