"""A connection to a SASL listener without a socket: bytes through the gate, on a mock clock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from odradek.broker.dispatch.authentication_gate import AuthenticationGate
from odradek.client.connection import answer_type
from odradek.client.sasl import SaslLogin, log_in
from odradek.security.attempt_rate import AttemptRate
from odradek.security.oauth.token_claims import ClaimRules
from odradek.security.oauth.unsecured_token import unsecured_token
from odradek.security.sasl_authentication import SaslAuthentication
from odradek.security.sasl_authenticator import SaslAuthenticator
from odradek.security.sasl_session import AuthenticationCounts
from odradek.security.sasl_settings import SaslSettings
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.codec import decode, encode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from support.broker import BrokerClient
from support.known_users import SECRET, KnownUsers

DELAY_MS = 100
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
"""Those of passwords."""


class Happenings(AuthenticationCounts):
    """Counts, and tells in which order."""

    def __init__(self, happened: list[str]) -> None:
        super().__init__()
        self.happened = happened

    def succeed(self, again: bool, took_ms: int) -> None:
        self.happened.append("succeeded")
        super().succeed(again, took_ms)

    def fail(self, again: bool) -> None:
        self.happened.append("failed")
        super().fail(again)


class Gate:
    """A connection to a SASL listener."""

    def __init__(self, *mechanisms: str, max_reauth_ms: int = 0) -> None:
        self.client = BrokerClient()
        self.happened: list[str] = []
        self.offloaded: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.works = True
        self.answered: list[bytes] = []
        self.pending: Deferred[Any] | None = None
        self.shared = SaslAuthentication(
            settings=SaslSettings(enabled_mechanisms=mechanisms or MECHANISMS, max_reauth_ms=max_reauth_ms),
            tokens=partial(unsecured_token, ClaimRules(clock=self.clock)),
            counts=Happenings(self.happened),
            credentials=KnownUsers({"alice": "secret", "bob": "secret"}),
            clock=self.clock,
            timer=self.clock.timer,
            offload=lambda work, done: self.offloaded.append((work, done)),
            new_nonce=lambda: "nonce",
            secret=SECRET,
            rate=AttemptRate(SaslSettings().attempts_per_ip, self.clock),
        )
        self.authenticator = self.opened()

    def opened(self) -> SaslAuthenticator:
        """A connection that was just accepted."""
        authenticator = SaslAuthenticator(
            self.shared,
            self.client.connection,
            let_in=self.let_in,
            guard=self.guard,
            close=lambda: self.happened.append("close"),
        )
        self.client.broker.authenticators[self.client.connection.connection_id] = authenticator
        self.gate = AuthenticationGate(authenticator, self.client.dispatcher)
        self.guard()
        return authenticator

    def guard(self) -> None:
        """As the listener does it."""
        self.guarded = True

    def let_in(self) -> None:
        """As the listener does it."""
        self.guarded = False
        if not self.authenticator.again:
            self.client.broker.authenticators.clear()

    @property
    def clock(self) -> MockClock:
        clock = self.client.broker.clock
        assert isinstance(clock, MockClock)
        return clock

    def work(self) -> None:
        """Run the offloaded work."""
        while self.works and self.offloaded:
            work, done = self.offloaded.pop(0)
            done(work())

    def give(self, frame: bytes) -> list[bytes]:
        """The answers to a frame so far, with their lengths."""
        self.answered = []
        door = self.gate if self.guarded else self.client.dispatcher
        answer = door.answer(frame, 0, self.client.connection)
        if isinstance(answer, Deferred):
            self.pending = answer
            answer.when_done(self.answered.append)
            self.work()
        elif answer is not None:
            self.answered.append(answer)  # type: ignore[arg-type]
        return self.answered

    def send(self, request: Any, version: int | None = None) -> Any:
        """The response; None if it is deferred."""
        chosen = request.VERSIONS.last if version is None else version
        header = request_header(
            RequestHeader(request.API_KEY, chosen, 1, "test"), flexible_request_header(request, chosen)
        )
        return self.read(request, chosen, self.give(header + encode(request, chosen)))

    @staticmethod
    def read(request: Any, version: int, frames: list[bytes]) -> Any:
        if not frames:
            return None
        _, start = read_response_header(frames[0], 4, flexible_response_header(request, version))
        return decode(answer_type(type(request)), version, frames[0], start)

    def late(self, request: Any, version: int) -> Any:
        """The answer after the delay."""
        assert self.answered == []
        assert "close" not in self.happened
        self.clock.advance(DELAY_MS)
        return self.read(request, version, self.answered)

    def log_in(self, mechanism: str, password: str = "secret") -> None:
        def send(request: Any, least_version: int = 0) -> Any:
            version = request.VERSIONS.last
            response = self.send(request)
            return self.late(request, version) if response is None else response

        log_in(send, SaslLogin(mechanism, "alice", password), "gate")
