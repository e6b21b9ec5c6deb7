"""The SASL conversation of one connection: a handshake, then tokens until the mechanism is satisfied.

After SaslServerAuthenticator.java. A refusal is answered after ``connection.failed.authentication.delay.ms``,
then the connection is closed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from odradek.clock import Clock, Timer
from odradek.deferred import Deferred, Offload
from odradek.plugin.context import ConnectionContext
from odradek.sampled_log import SampledLog
from odradek.security.attempt_rate import AttemptRate
from odradek.security.plain_server import PLAIN, PlainSaslServer
from odradek.security.sasl_server import SaslFailure, SaslServer
from odradek.security.scram import ScramMechanism, mechanism_named
from odradek.security.scram_credential import CredentialLookup
from odradek.security.scram_server import ScramSaslServer
from odradek.settings.kinds import INT, Items, Whole
from odradek.settings.setting import setting
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeResponse

log = logging.getLogger(__name__)

SCRAM_MECHANISMS = tuple(each.mechanism_name for each in ScramMechanism)
MECHANISMS = (*SCRAM_MECHANISMS, PLAIN)
"""The mechanisms that can be enabled."""
FAILURES_LOGGED = 60
"""Failures that are logged in a minute; further ones are counted."""
MOST_OF_USER = 100
"""Characters of a user name in the log: the client chooses it."""
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """Settings of SASL listeners."""

    # fmt: off
    enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms", Items(MECHANISMS, least=1), SCRAM_MECHANISMS,
        "SASL mechanisms that clients may use; `PLAIN` can be added, but sends passwords unencrypted.",
        page="../howto/authenticate-clients.md",
    )
    failed_authentication_delay_ms: int = setting(
        "connection.failed.authentication.delay.ms", Whole(INT), 100,
        "How long the host waits before it tells a client that authentication failed.", unit="ms",
    )
    server_max_receive_bytes: int = setting(
        "sasl.server.max.receive.size", Whole(INT), 524_288,
        "Largest request of a client that has not authenticated yet; a client that sends a larger one is "
        "disconnected.", unit="bytes",
    )
    attempts_per_ip: int = setting(
        "max.authentication.rate.per.ip", Whole(INT, 1), 50,
        "Attempts to authenticate per second from one address, or one IPv6 network of 64 bits; further ones "
        "are answered later.",
        unit="attempts/s",
    )
    most_unauthenticated: int = setting(
        "connections.unauthenticated.max", Whole(INT, 1), 5_000,
        "Limit of open connections to SASL listeners that have not authenticated, but at most half of the "
        "connections that the process's limit of open files allows; one more closes the oldest.",
        unit="connections",
    )
    max_unauthenticated_ms: int = setting(
        "connections.unauthenticated.max.ms", Whole(INT, 100), 60_000,
        "A connection to a SASL listener that has not authenticated after this time is closed.", unit="ms",
    )
    # fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthentication:
    """Shared by all connections of a host that authenticate."""

    settings: SaslSettings
    credentials: CredentialLookup
    clock: Clock
    timer: Timer
    offload: Offload
    new_nonce: Callable[[], str]
    secret: bytes
    rate: AttemptRate
    failures_log: SampledLog = field(default_factory=lambda: SampledLog(log, most=FAILURES_LOGGED))

    def server(self, mechanism: str) -> SaslServer:
        """A fresh attempt with one of `MECHANISMS`."""
        scram = mechanism_named(mechanism)
        if scram is None:
            return PlainSaslServer(self.credentials, self.secret)
        return ScramSaslServer(scram, self.credentials, self.secret, self.new_nonce())


class SaslAuthenticator:
    """One connection that has not authenticated yet.

    Args:
        shared: The credentials, settings and threads of the host.
        connection: Gets the principal.
        succeeded: Called once the principal is known.
        failed: Called when the client is refused.
        close: Closes the connection once what was written has been sent.
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
        """The attempt; None before the handshake."""
        self.counted = False
        """The attempt is counted for the rate of the client's address."""
        self.bare_tokens = False
        """The handshake was one of version 0: tokens come without a request around them."""
        self.waits = True
        """The client is still connected and not authenticated yet. Read from any thread."""

    def handshake(
        self, mechanism: str, version: int
    ) -> SaslHandshakeResponse | Deferred[SaslHandshakeResponse]:
        """Begin an attempt with a mechanism, or refuse it."""
        enabled = self.shared.settings.enabled_mechanisms
        if mechanism not in enabled:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            self.refuse(f"mechanism {mechanism[:32]!r}")
            deferred = Deferred[SaslHandshakeResponse]()
            self.end(deferred, SaslHandshakeResponse(error_code=code, mechanisms=list(enabled)))
            return deferred
        self.mechanism = mechanism
        self.server = self.shared.server(mechanism)
        self.bare_tokens = version == 0
        return SaslHandshakeResponse(mechanisms=list(enabled))

    def authenticate(self, token: bytes) -> Deferred[SaslAuthenticateResponse]:
        """Answer the token of a SaslAuthenticate request; later if it is refused."""

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

        def begin() -> None:
            if server.costly:
                self.shared.offload(work, judged)
            else:
                judged(work())

        self.in_time(deferred, begin)
        return deferred

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

    def advance(self, server: SaslServer) -> None:
        """A token was accepted. After the last one the principal is known."""
        if server.user is not None:
            self.connection.principal = f"User:{server.user}"
            self.leave()
            self.succeeded()

    def leave(self) -> None:
        """The connection is authenticated, or gone."""
        self.waits = False

    def refuse(self, why: str) -> None:
        """Count and log a failure. The answer to the client has fewer details."""
        self.failed()
        user = self.server.claimed if self.server else None
        named: dict[str, Any] = {} if user is None else {"user": user[:MOST_OF_USER]}
        self.shared.failures_log.write(
            logging.INFO,
            self.shared.clock.monotonic_ms(),
            "authentication failed: %s",
            why,
            connection=self.connection.connection_id,
            listener=self.connection.listener_name,
            mechanism=self.mechanism,
            **named,
        )

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
    except Exception as error:  # noqa: BLE001  may run on a thread; the dispatcher answers what is a bug
        return error
