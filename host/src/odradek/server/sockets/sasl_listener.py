"""A listener whose clients authenticate before any other request."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from odradek.broker.dispatch.authentication_gate import AuthenticationGate
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.plugin.context import ConnectionContext
from odradek.security.attempt_rate import AttemptRate
from odradek.security.sasl_authenticator import SaslAuthentication, SaslAuthenticator, SaslSettings
from odradek.server.sockets.channel import Channel
from odradek.server.sockets.listener import Listener, ListenerAddress
from odradek.server.sockets.listener_settings import SASL_PLAINTEXT
from odradek.server.sockets.unauthenticated import Unauthenticated
from odradek.server.upkeep.file_threads import FileThreads

NONCE_BYTES = 24
SECRET_BYTES = 32


class SaslListener(Listener):
    """Puts an `AuthenticationGate` in the dispatcher's place until a connection has authenticated.

    From then on the connection costs the same as on any listener.
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
        """The broker's: by connection id, connections that have not authenticated yet."""
        self.unauthenticated = unauthenticated
        """The same connections; those of all SASL listeners of the host."""
        self.authenticated = 0
        self.authentication_failures = 0

    def opened(self, channel: Channel, transport: asyncio.Transport) -> ConnectionContext:
        """A channel has its transport: put the gate before the dispatcher."""
        connection = super().opened(channel, transport)
        authenticator = SaslAuthenticator(
            self.authentication,
            connection,
            succeeded=partial(self.let_in, channel),
            failed=self.count_failure,
            close=channel.close,
        )
        self.authenticators[connection.connection_id] = authenticator
        self.unauthenticated.add(channel)
        channel.answer = AuthenticationGate(authenticator, self.dispatcher.answer).answer
        limit_bytes = self.authentication.settings.server_max_receive_bytes
        channel.max_request_bytes = min(self.max_request_bytes, limit_bytes)
        return connection

    def let_in(self, channel: Channel) -> None:
        """The client has authenticated: remove the gate."""
        self.authenticated += 1
        self.remove_gate(channel)

    def closed(self, channel: Channel) -> None:
        """The connection is gone, perhaps before it authenticated."""
        self.remove_gate(channel)
        super().closed(channel)

    def remove_gate(self, channel: Channel) -> None:
        """Put the dispatcher back. The channel and its authenticator no longer hold each other."""
        authenticator = self.authenticators.pop(channel.context.connection_id, None)
        if authenticator is not None:
            authenticator.leave()
            self.unauthenticated.remove(channel)
            channel.answer = self.dispatcher.answer
            channel.max_request_bytes = self.max_request_bytes

    def count_failure(self) -> None:
        """Count a client that was refused."""
        self.authentication_failures += 1


def listener_kind(
    settings: SaslSettings, dispatcher: Dispatcher, threads: FileThreads
) -> Callable[[ListenerAddress], Callable[..., Listener]]:
    """Makes listeners of the kind that their security protocol needs.

    Args:
        settings: The configuration of all SASL listeners.
        dispatcher: Answers the clients that have authenticated.
        threads: Check passwords, which takes milliseconds.
    """
    broker = dispatcher.broker
    authentication = SaslAuthentication(
        settings=settings,
        credentials=broker.credentials,
        clock=broker.clock,
        timer=broker.timer,
        offload=threads.offload,
        new_nonce=lambda: secrets.token_urlsafe(NONCE_BYTES),
        secret=secrets.token_bytes(SECRET_BYTES),
        rate=AttemptRate(settings.attempts_per_ip, broker.clock),
    )
    descriptors = broker.connection_quotas.descriptors
    with_sasl = partial(
        SaslListener,
        authentication=authentication,
        authenticators=broker.authenticators,
        unauthenticated=Unauthenticated(
            min(settings.most_unauthenticated, max(descriptors.connections // 2, 1)),
            settings.max_unauthenticated_ms,
            broker.clock,
            broker.timer,
        ),
    )
    return lambda address: with_sasl if address.security_protocol == SASL_PLAINTEXT else Listener
