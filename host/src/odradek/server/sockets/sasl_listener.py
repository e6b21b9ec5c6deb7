"""A listener whose clients say who they are before anything else."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from odradek.broker.dispatch.routing import Dispatcher
from odradek.broker.dispatch.sasl_authenticator import SaslAuthentication, SaslAuthenticator, SaslSettings
from odradek.plugin.context import ConnectionContext
from odradek.server.sasl_keys import SASL_PLAINTEXT
from odradek.server.sockets.channel import Channel
from odradek.server.sockets.listener import Listener, ListenerAddress
from odradek.server.upkeep.step_runner import FileThreads

NONCE_BYTES = 24
SECRET_BYTES = 32


class SaslListener(Listener):
    """Puts a `SaslAuthenticator` where the dispatcher is, for as long as a connection needs it.

    Connections that have authenticated cost what they cost on any listener.
    """

    def __init__(self, *args: Any, authentication: SaslAuthentication, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.authentication = authentication
        self.authenticated = 0
        self.authentication_failures = 0

    def opened(self, channel: Channel, transport: asyncio.Transport) -> ConnectionContext:
        """A connection was accepted: hold it at the gate."""
        connection = super().opened(channel, transport)
        limit_bytes, dispatch = channel.max_request_bytes, channel.answer

        def succeeded() -> None:
            self.authenticated += 1
            channel.answer = dispatch
            channel.max_request_bytes = limit_bytes

        gate = SaslAuthenticator(
            self.authentication,
            connection,
            succeeded=succeeded,
            failed=self.count_failure,
            close=channel.close,
        )
        channel.answer = gate.answer
        channel.max_request_bytes = min(limit_bytes, self.authentication.settings.server_max_receive_bytes)
        return connection

    def closed(self, channel: Channel) -> None:
        """A connection is gone, perhaps from the gate."""
        gate = self.dispatcher.broker.authenticators.get(channel.context.connection_id)
        if gate is not None:
            gate.leave()
        super().closed(channel)

    def count_failure(self) -> None:
        """Somebody could not prove who he is."""
        self.authentication_failures += 1


def listener_kind(
    settings: SaslSettings, dispatcher: Dispatcher, threads: FileThreads
) -> Callable[[ListenerAddress], Callable[..., Listener]]:
    """Makes listeners of the kind that their security protocol asks for.

    Args:
        settings: Those of all SASL listeners.
        dispatcher: Answers who has authenticated.
        threads: For passwords, whose check takes milliseconds.
    """
    authentication = SaslAuthentication(
        settings=settings,
        credentials=dispatcher.broker.credentials,
        dispatcher=dispatcher,
        offload=threads.offload,
        new_nonce=lambda: secrets.token_urlsafe(NONCE_BYTES),
        secret=secrets.token_bytes(SECRET_BYTES),
    )
    with_sasl = partial(SaslListener, authentication=authentication)
    return lambda address: with_sasl if address.security_protocol == SASL_PLAINTEXT else Listener
