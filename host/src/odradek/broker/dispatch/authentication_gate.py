"""The gate of a SASL listener: it stands before the dispatcher until a connection has authenticated.

ApiVersions and SaslHandshake may come first, then SaslAuthenticate until the mechanism is satisfied. After
SaslHandshake v0 tokens come without a request around them. Any other request closes the connection.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from odradek.broker.dispatch.dispatcher import Answer
from odradek.broker.dispatch.routes import API_VERSIONS_KEY, CloseConnection
from odradek.plugin.context import ConnectionContext
from odradek.security.sasl_authenticator import SaslAuthenticator
from odradek.wire.errors import WireError
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest

FRAME_LENGTH = struct.Struct(">i")
API_KEY = struct.Struct(">h")
BEFORE_HANDSHAKE = frozenset({API_VERSIONS_KEY, SaslHandshakeRequest.API_KEY})
AFTER_HANDSHAKE = frozenset({SaslAuthenticateRequest.API_KEY})


class AuthenticationGate:
    """Takes the dispatcher's place for one connection.

    Args:
        authenticator: The connection's SASL conversation.
        dispatch: Answers the requests that may pass.
    """

    def __init__(
        self,
        authenticator: SaslAuthenticator,
        dispatch: Callable[[bytes | memoryview, int, ConnectionContext], Answer],
    ) -> None:
        self.authenticator = authenticator
        self.dispatch = dispatch

    def answer(self, frame: bytes | memoryview, offset: int, connection: ConnectionContext) -> Answer:
        """Like `Dispatcher.answer`, for the requests of the authentication.

        Raises:
            WireError: The bytes make no sense: close the connection.
            CloseConnection: The request has to wait until the client has authenticated.
        """
        authenticator = self.authenticator
        if authenticator.bare_tokens:
            deferred = authenticator.bare(bytes(frame[offset:]))
            deferred.finish = bare_frame
            return deferred
        if len(frame) - offset < API_KEY.size:
            raise WireError(f"a request of {len(frame) - offset} bytes has no header")
        (api_key,) = API_KEY.unpack_from(frame, offset)
        if api_key not in (BEFORE_HANDSHAKE if authenticator.server is None else AFTER_HANDSHAKE):
            authenticator.refuse(f"api key {api_key} before the client has authenticated")
            raise CloseConnection("not authenticated")
        return self.dispatch(frame, offset, connection)


def bare_frame(outcome: bytes | Exception | None) -> bytes:
    """The answer to a bare token in a frame. Empty, which closes the connection, if the token was refused."""
    if not isinstance(outcome, bytes):
        return b""
    return FRAME_LENGTH.pack(len(outcome)) + outcome
