"""The gate of a SASL listener: it stands before the dispatcher until a connection has authenticated, and
whenever it has to do so again.

ApiVersions and SaslHandshake may come first, then SaslAuthenticate until the mechanism is satisfied. After
SaslHandshake v0 tokens come without a request around them. Any other request closes the connection, during a
re-authentication with an error response of its API.
"""

from __future__ import annotations

import struct

from odradek.broker.dispatch.dispatcher import Answer, Dispatcher
from odradek.broker.dispatch.routes import API_VERSIONS_KEY, CloseConnection
from odradek.plugin.context import ConnectionContext
from odradek.security.sasl_authenticator import SaslAuthenticator
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.header import shown_client_id
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
        dispatcher: Answers the requests that may pass.
    """

    def __init__(self, authenticator: SaslAuthenticator, dispatcher: Dispatcher) -> None:
        self.authenticator = authenticator
        self.dispatcher = dispatcher

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
        authenticator.client_id = shown_client_id(frame, offset)
        (api_key,) = API_KEY.unpack_from(frame, offset)
        if authenticator.server is not None:
            if api_key not in AFTER_HANDSHAKE:
                return self.refused(api_key, frame, offset, connection)
        elif authenticator.again:
            if api_key != SaslHandshakeRequest.API_KEY or not authenticator.may_begin():
                authenticator.late_request()
                raise CloseConnection("the session has expired")
        elif api_key not in BEFORE_HANDSHAKE:
            return self.refused(api_key, frame, offset, connection)
        return self.dispatcher.answer(frame, offset, connection)

    def refused(
        self, api_key: int, frame: bytes | memoryview, offset: int, connection: ConnectionContext
    ) -> Answer:
        """End an authentication because another request came instead.

        Raises:
            WireError: The bytes make no sense.
            CloseConnection: The first authentication is ended without an answer.
        """
        authenticator = self.authenticator
        authenticator.refuse(f"api key {api_key} before the client has authenticated")
        if not authenticator.again:
            raise CloseConnection("not authenticated")
        return authenticator.late(
            self.dispatcher.refuse(frame, offset, connection, ErrorCode.ILLEGAL_SASL_STATE)
        )


def bare_frame(outcome: bytes | Exception | None) -> bytes:
    """The answer to a bare token in a frame. Empty, which closes the connection, if the token was refused."""
    if not isinstance(outcome, bytes):
        return b""
    return FRAME_LENGTH.pack(len(outcome)) + outcome
