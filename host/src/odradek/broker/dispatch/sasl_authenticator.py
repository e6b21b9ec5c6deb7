"""Authentication of a connection, before it may ask for anything else.

After SaslServerAuthenticator.java: ApiVersions and SaslHandshake first, then SaslAuthenticate until the
mechanism is content; SaslHandshake v0 is followed by tokens without a request around them. Whatever else
comes closes the connection. An answer that refuses comes late, and the connection is closed behind it.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from odradek.broker.dispatch.deferred import Deferred
from odradek.broker.dispatch.routing import API_VERSIONS_KEY, CloseConnection, Dispatcher, PendingAnswer
from odradek.broker.dispatch.throttling import Throttled
from odradek.plugin.context import ConnectionContext
from odradek.security.plain_server import PLAIN, PlainSaslServer
from odradek.security.sasl_server import SaslFailure, SaslServer
from odradek.security.scram import ScramMechanism, mechanism_named
from odradek.security.scram_credential import CredentialLookup
from odradek.security.scram_server import ScramSaslServer
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

log = logging.getLogger(__name__)

FRAME_LENGTH = struct.Struct(">i")
API_KEY = struct.Struct(">h")
BEFORE_HANDSHAKE = frozenset({API_VERSIONS_KEY, SaslHandshakeRequest.API_KEY})
AFTER_HANDSHAKE = frozenset({SaslAuthenticateRequest.API_KEY})
MECHANISMS = (*(each.mechanism_name for each in ScramMechanism), PLAIN)
"""All that can be enabled."""

Offload = Callable[[Callable[[], Any], Callable[[Any], None]], None]
"""Run work outside the loop and call back on the loop with what it returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """The configuration of SASL listeners, under Kafka's names."""

    enabled_mechanisms: tuple[str, ...] = tuple(each.mechanism_name for each in ScramMechanism)
    failed_authentication_delay_ms: int = 100
    server_max_receive_bytes: int = 524_288


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthentication:
    """What all connections of a host authenticate with."""

    settings: SaslSettings
    credentials: CredentialLookup
    dispatcher: Dispatcher
    offload: Offload
    new_nonce: Callable[[], str]
    secret: bytes

    def server(self, mechanism: str) -> SaslServer:
        """A fresh attempt with one of `MECHANISMS`."""
        scram = mechanism_named(mechanism)
        if scram is None:
            return PlainSaslServer(self.credentials, self.secret)
        return ScramSaslServer(scram, self.credentials, self.secret, self.new_nonce())


class SaslAuthenticator:
    """One connection on its way in.

    Args:
        shared: What it authenticates with.
        connection: Gets the principal in the end.
        succeeded: Called once the principal is there.
        failed: Called when it is clear that there will be none.
        close: Closes the connection behind what was answered.
    """

    def __init__(
        self,
        shared: SaslAuthentication,
        connection: ConnectionContext,
        *,
        succeeded: Callable[[], None],
        failed: Callable[[], None],
        close: Callable[[], None],
    ) -> None:
        self.shared = shared
        self.connection = connection
        self.succeeded = succeeded
        self.failed = failed
        self.close = close
        self.mechanism = ""
        self.server: SaslServer | None = None
        """The attempt, from the handshake on."""
        self.bare_tokens = False
        """The handshake was one of version 0."""
        self.waiting = shared.dispatcher.broker.authenticators
        self.waiting[connection.connection_id] = self

    def answer(
        self, frame: bytes | memoryview, offset: int, connection: ConnectionContext
    ) -> bytes | PendingAnswer | Throttled | None:
        """What `Dispatcher.answer` does, for those who may ask it."""
        if self.bare_tokens:
            return self.answer_bare(bytes(frame[offset:]))
        if len(frame) - offset < API_KEY.size:
            raise WireError(f"a request of {len(frame) - offset} bytes has no header")
        (api_key,) = API_KEY.unpack_from(frame, offset)
        if api_key not in (BEFORE_HANDSHAKE if self.server is None else AFTER_HANDSHAKE):
            self.refuse(f"api key {api_key} before the client has authenticated")
            raise CloseConnection("not authenticated")
        return self.shared.dispatcher.answer(frame, offset, connection)

    def answer_bare(self, token: bytes) -> PendingAnswer:
        """A token that is the whole frame; so is its answer, and a failure has none."""
        dispatcher = self.shared.dispatcher
        deferred = self.evaluate(token, accepted=bytes, refused=lambda _: None)
        return BareAnswer(
            dispatcher, dispatcher.compile(SaslAuthenticateRequest.API_KEY, 0), 0, None, deferred
        )

    def handshake(self, mechanism: str, version: int) -> SaslHandshakeResponse | Deferred:
        """Begin an attempt with a mechanism, or refuse it."""
        enabled = self.shared.settings.enabled_mechanisms
        if mechanism not in enabled:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            deferred = Deferred()
            self.refuse(f"mechanism {mechanism[:32]!r}")
            self.end(deferred, SaslHandshakeResponse(error_code=code, mechanisms=list(enabled)))
            return deferred
        self.mechanism = mechanism
        self.server = self.shared.server(mechanism)
        self.bare_tokens = version == 0
        return SaslHandshakeResponse(mechanisms=list(enabled))

    def authenticate(self, token: bytes) -> Deferred:
        """Answer a token, in time or, if it is refused, later."""

        def accepted(answer: bytes) -> SaslAuthenticateResponse:
            return SaslAuthenticateResponse(auth_bytes=answer)

        def refused(error: SaslFailure) -> SaslAuthenticateResponse:
            message = error.message or (
                f"Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{self.mechanism}"
            )
            return SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message
            )

        return self.evaluate(token, accepted, refused)

    def evaluate(
        self, token: bytes, accepted: Callable[[bytes], Any], refused: Callable[[SaslFailure], Any]
    ) -> Deferred:
        """Let the mechanism judge a token.

        Args:
            token: As it came.
            accepted: Makes the response of the mechanism's answer.
            refused: Makes the response of a failure.
        """
        assert self.server is not None
        server, deferred = self.server, Deferred()

        def work() -> bytes | Exception:
            return judge(server, token) if self.waits else SaslFailure("the client has left")

        def judged(result: bytes | Exception) -> None:
            if not self.waits:
                return
            if isinstance(result, SaslFailure):
                self.refuse(str(result))
                self.end(deferred, refused(result))
            elif isinstance(result, Exception):
                deferred.complete(result)
            else:
                self.advance(server)
                deferred.complete(accepted(result))

        if server.costly:
            self.shared.offload(work, judged)
        else:
            judged(work())
        return deferred

    def advance(self, server: SaslServer) -> None:
        """A token was good; perhaps it was the last."""
        if server.user is not None:
            self.connection.principal = f"User:{server.user}"
            self.leave()
            self.succeeded()

    @property
    def waits(self) -> bool:
        """Whether the client is still here, and not let in yet. From any thread."""
        return self.waiting.get(self.connection.connection_id) is self

    def leave(self) -> None:
        """The connection is authenticated, or gone."""
        self.waiting.pop(self.connection.connection_id, None)

    def refuse(self, why: str) -> None:
        """Count and log a failure. The client is told less."""
        self.failed()
        log.info(
            "authentication failed: %s",
            why,
            extra={
                "connection": self.connection.connection_id,
                "listener": self.connection.listener_name,
                "mechanism": self.mechanism,
            },
        )

    def end(self, deferred: Deferred, response: Any) -> None:
        """Answer and close after ``connection.failed.authentication.delay.ms``."""

        def answer_and_close() -> None:
            deferred.complete(response)
            self.close()

        broker = self.shared.dispatcher.broker
        at_ms = broker.clock.now_ms() + self.shared.settings.failed_authentication_delay_ms
        task = broker.timer.schedule(at_ms, answer_and_close)
        deferred.abandon = task.cancel
        deferred.hurry = answer_and_close


class BareAnswer(PendingAnswer):
    """The answer to a token that came without a request around it."""

    def answer(self, response: Any) -> bytes:
        """The token in a frame; no bytes, which closes, where there is none."""
        if not isinstance(response, bytes):
            return b""
        return FRAME_LENGTH.pack(len(response)) + response


def judge(server: SaslServer, token: bytes) -> bytes | Exception:
    """What a mechanism says to a token."""
    try:
        return server.evaluate(token)
    except Exception as error:  # noqa: BLE001  may run on a thread; the dispatcher answers what is a bug
        return error
