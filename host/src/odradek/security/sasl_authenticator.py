"""The SASL conversation of one connection: a handshake, then tokens until the mechanism is satisfied.

After SaslServerAuthenticator.java and the re-authentication of KafkaChannel.java (KIP-368). A refusal is
answered after ``connection.failed.authentication.delay.ms``, then the connection is closed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from odradek.plugin.context import ConnectionContext, about_client
from odradek.security.refused_login import RefusedLogin
from odradek.security.sasl_authentication import SaslAuthentication
from odradek.security.sasl_server import SaslFailure, SaslServer
from odradek.security.sasl_session import REAUTHENTICATION_INTERVAL_MS, SaslSession, lifetime_ms
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeResponse

MOST_OF_USER = 100
"""Characters of a user name in the log: the client chooses it."""
FIRST_WITH_REAUTHENTICATION = 1
"""The version of SaslAuthenticate whose clients know how long a session lasts."""
R = TypeVar("R")


class SaslAuthenticator:
    """One connection that has not authenticated yet, or will have to do so again.

    Args:
        shared: The credentials, settings and threads of the listener.
        connection: Gets the principal.
        let_in: Lets the requests of the connection pass; called after each success.
        guard: Lets only requests of an authentication pass, until the next success.
        close: Closes the connection once what was written has been sent.
    """

    def __init__(
        self,
        shared: SaslAuthentication,
        connection: ConnectionContext,
        *,
        let_in: Callable[[], None],
        guard: Callable[[], None],
        close: Callable[[], None],
    ) -> None:
        self.shared = shared
        self.connection = connection
        self.let_in = let_in
        self.guard = guard
        self.close = close
        self.client_id: str | None = None
        """Of the latest request, for the log."""
        self.mechanism = ""
        self.server: SaslServer | None = None
        """The attempt; None before the handshake."""
        self.session: SaslSession | None = None
        """None before the first success, and if the client need not authenticate again."""
        self.lifetime_ms: int | None = None
        """How long the session lasts that the latest success began; None if there is none."""
        self.counted = False
        """The attempt is counted for the rate of the client's address."""
        self.bare_tokens = False
        """The handshake was one of version 0: tokens come without a request around them."""
        self.knows_sessions = False
        """The client is told how long its session lasts."""
        self.waits = True
        """The client is still connected, and not authenticated or doing it again. Read from any thread."""
        self.began_ms = shared.clock.monotonic_ms()

    @property
    def again(self) -> bool:
        """Whether the client has authenticated before."""
        return self.session is not None

    def handshake(
        self, mechanism: str, version: int
    ) -> SaslHandshakeResponse | Deferred[SaslHandshakeResponse]:
        """Begin an attempt with a mechanism, or refuse it.

        Raises:
            ApiError: ILLEGAL_SASL_STATE: the client authenticates again too soon.
        """
        session = self.session
        if session is not None:
            self.begin_again(session)
        enabled = self.shared.settings.enabled_mechanisms
        if mechanism not in enabled:
            self.refuse(f"mechanism {mechanism[:32]!r}")
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return self.late(SaslHandshakeResponse(error_code=code, mechanisms=list(enabled)))
        self.mechanism = mechanism
        self.server = self.shared.server(mechanism)
        self.bare_tokens = version == 0
        return SaslHandshakeResponse(mechanisms=list(enabled))

    def may_begin(self) -> bool:
        """Whether a handshake would begin an attempt."""
        began_ms = None if self.session is None else self.session.began_ms
        now_ms = self.shared.clock.monotonic_ms()
        return self.server is None and (began_ms is None or now_ms - began_ms >= REAUTHENTICATION_INTERVAL_MS)

    def begin_again(self, session: SaslSession) -> None:
        """The client authenticates again.

        Raises:
            ApiError: ILLEGAL_SASL_STATE: too soon.
        """
        if not self.may_begin():
            raise ApiError(ErrorCode.ILLEGAL_SASL_STATE)
        session.began_ms = self.began_ms = self.shared.clock.monotonic_ms()
        self.waits, self.counted, self.lifetime_ms = True, False, None
        self.guard()

    def authenticate(self, token: bytes, version: int) -> Deferred[SaslAuthenticateResponse | None]:
        """Answer the token of a SaslAuthenticate request; later if it is refused.

        Raises:
            ApiError: ILLEGAL_SASL_STATE: the client has authenticated, and has not begun to do it again.
        """
        if self.server is None:
            raise ApiError(
                ErrorCode.ILLEGAL_SASL_STATE,
                "SaslAuthenticate request received after successful authentication",
            )
        self.knows_sessions = version >= FIRST_WITH_REAUTHENTICATION

        def accepted(answer: bytes) -> SaslAuthenticateResponse:
            return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=self.lifetime_ms or 0)

        def refused(error: SaslFailure) -> SaslAuthenticateResponse | None:
            kind = "re-authentication" if self.again else "authentication"
            message = error.message or (
                f"Authentication failed during {kind} due to invalid credentials with SASL mechanism "
                f"{self.mechanism}"
            )
            return SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message
            )

        if self.session is not None and self.mechanism != self.session.mechanism:
            self.refuse(f"mechanism {self.mechanism}, the client used {self.session.mechanism} before")
            return self.late(None)
        return self.evaluate(token, accepted, refused)

    def bare(self, token: bytes) -> Deferred[bytes | None]:
        """Answer a bare token with the mechanism's bytes; with None if it is refused."""
        return self.evaluate(token, accepted=bytes, refused=lambda _: None)

    def evaluate(
        self, token: bytes, accepted: Callable[[bytes], R], refused: Callable[[SaslFailure], R]
    ) -> Deferred[R]:
        """Let the mechanism check a token.

        Args:
            token: The client's bytes.
            accepted: Makes the response from the mechanism's answer.
            refused: Makes the response of a failure.
        """
        assert self.server is not None
        server, deferred = self.server, Deferred[R]()

        def work() -> bytes | Exception:
            return judge(server, token) if self.waits else SaslFailure("the client has left")

        def judged(result: bytes | Exception) -> None:
            if self.waits:
                self.respond(deferred, self.advanced(server, result), accepted, refused)

        def begin() -> None:
            if server.costly:
                self.shared.offload(work, judged)
            else:
                judged(work())

        self.in_time(deferred, begin)
        return deferred

    def respond(
        self,
        deferred: Deferred[R],
        result: bytes | Exception,
        accepted: Callable[[bytes], R],
        refused: Callable[[SaslFailure], R],
    ) -> None:
        """Answer a token that was checked; a failure later."""
        if isinstance(result, SaslFailure):
            if not result.counted:
                self.refuse(str(result))
            self.end(deferred, refused(result))
        else:
            deferred.complete(result if isinstance(result, Exception) else accepted(result))

    def in_time(self, deferred: Deferred[R], begin: Callable[[], None]) -> None:
        """Begin to evaluate a token: the first one as soon as the rate of the client's address allows it."""
        shared = self.shared
        delay_ms = 0 if self.counted else shared.rate.delay_ms(self.connection.client_address)
        self.counted = True
        if not delay_ms:
            begin()
            return

        def begin_late() -> None:
            deferred.abandon = deferred.hurry = None
            begin()

        task = shared.timer.schedule(shared.clock.monotonic_ms() + delay_ms, begin_late)
        deferred.abandon = task.cancel
        deferred.hurry = self.close  # the client can authenticate to another host, or to this one later

    def advanced(self, server: SaslServer, answer: bytes | Exception) -> bytes | Exception:
        """The mechanism has an answer to a token; after the last one the principal is known.

        Returns:
            The answer, or the reason why the user is not accepted.
        """
        if isinstance(answer, Exception):
            return answer
        if server.doubt is not None:
            self.refuse(server.doubt)
        if server.user is None:
            return answer
        connection, shared = self.connection, self.shared
        try:
            principal = shared.principal(connection, self.mechanism, server.user)
        except SaslFailure as failure:
            return failure
        if self.again and principal != connection.principal:
            before, now = (each.replace(":", ".", 1) for each in (connection.principal, principal))
            message = f"Cannot change principals during re-authentication from {before}: {now}"
            return SaslFailure("another principal", message)
        connection.principal = principal
        self.succeed(server)
        return answer

    def succeed(self, server: SaslServer) -> None:
        """Let the client in, and begin its session."""
        shared, again = self.shared, self.again
        now_ms = shared.clock.monotonic_ms()
        limit_ms = shared.reauth_ms(self.mechanism)
        self.lifetime_ms = lifetime_ms(limit_ms, server.expires_ms, shared.clock.now_ms())
        self.leave()
        if self.lifetime_ms is not None:
            ends = shared.timer.schedule(now_ms + self.lifetime_ms, self.expire)
            began_ms = None if self.session is None else self.session.began_ms
            self.session = SaslSession(self.mechanism, ends, began_ms)
            self.server, self.bare_tokens = None, False
        shared.counts.succeed(again, now_ms - self.began_ms)
        if not again and not self.knows_sessions:
            shared.counts.never_again += 1
        self.let_in()
        if self.lifetime_ms == 0:
            self.guard()

    def expire(self) -> None:
        """The session is over. Nothing happens until the next request, unless that authenticates again."""
        if self.server is None:
            self.guard()

    def late_request(self) -> None:
        """Count and log a request after the session was over."""
        self.shared.counts.expired += 1
        self.write_log("session expired: %s", "the client was late to authenticate again")

    def leave(self) -> None:
        """The connection is authenticated, or gone."""
        self.waits = False
        if self.session is not None:
            self.session.ends.cancel()

    def refuse(self, why: str) -> None:
        """Count and log a failure. The answer to the client has fewer details."""
        self.shared.counts.fail(self.again)
        user = self.server.claimed if self.server else None
        named: dict[str, Any] = {} if user is None else {"user": user[:MOST_OF_USER]}
        self.write_log("authentication failed: %s", why, **named)
        connection = self.connection
        self.shared.report(
            RefusedLogin(
                listener=connection.listener_name,
                address=connection.client_address,
                port=connection.client_port,
                mechanism=self.mechanism,
                why=why,
                claimed=user,
                connection=connection.connection_id,
                principal=connection.principal,
                client_id=self.client_id or "",
                software=(connection.client_software_name, connection.client_software_version),
            )
        )

    def write_log(self, message: str, why: str, **named: Any) -> None:
        """Log an event of this connection, unless there are too many."""
        self.shared.failures_log.write(
            logging.INFO,
            self.shared.clock.monotonic_ms(),
            message,
            why,
            listener=self.connection.listener_name,
            mechanism=self.mechanism,
            **about_client(self.connection, self.client_id),
            **named,
        )

    def late(self, response: R) -> Deferred[R]:
        """Answer later, and close. None closes without an answer."""
        deferred = Deferred[R]()
        self.end(deferred, response)
        return deferred

    def end(self, deferred: Deferred[R], response: R) -> None:
        """Answer and close after ``connection.failed.authentication.delay.ms``."""

        def answer_and_close() -> None:
            deferred.complete(response)
            self.close()

        at_ms = self.shared.clock.monotonic_ms() + self.shared.settings.failed_authentication_delay_ms
        task = self.shared.timer.schedule(at_ms, answer_and_close)
        deferred.abandon = task.cancel
        deferred.hurry = answer_and_close


def judge(server: SaslServer, token: bytes) -> bytes | Exception:
    """The mechanism's answer to a token, or the exception it raised."""
    try:
        return server.evaluate(token)
    except SaslFailure as failure:
        return failure.kept()
    except Exception as error:  # noqa: BLE001  may run on a thread; the dispatcher answers what is a bug
        return error
