"""Tokens of authentication attempts. The first byte chooses the mechanism and the side; tokens end with a
byte that UTF-8 does not have.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

from odradek.security.oauth.bearer_message import CONTINUE, client_first
from odradek.security.oauth.bearer_server import OAuthBearerSaslServer
from odradek.security.oauth.bearer_token import TokenValidator
from odradek.security.oauth.key_set import KeySet, RefreshTimes
from odradek.security.oauth.signed_token import signed_token
from odradek.security.oauth.token_claims import ClaimRules
from odradek.security.plain_server import PlainSaslServer
from odradek.security.sasl_server import SaslFailure, SaslServer
from odradek.security.scram import ScramMechanism
from odradek.security.scram_client import ScramSaslClient
from odradek.security.scram_credential import ScramCredential, salted_credential
from odradek.security.scram_messages import BadMessage, ServerFirst
from odradek.security.scram_server import ScramSaslServer
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import offload_inline
from support.tokens import claims_of, jwks, signed

USER, PASSWORD, SALT = "bob", "builder", b"0123456789abcdef"
ITERATIONS = 4_096
MOST_ITERATIONS = 5_000
"""More would only take time."""
SECRET = b"secret"
END = b"\xff"
PLAIN_SIDE, CLIENT_SIDE, BEARER_SIDE = 2, 3, 4
"""The first two sides are servers of each mechanism of SCRAM."""
SIDES = 5
CLOCK = MockClock()
GOOD_TOKEN = signed(claims_of(USER, CLOCK.now_ms() / 1000))


class OneUser:
    """The credentials of `USER`."""

    def __init__(self) -> None:
        self.credentials = {
            mechanism: salted_credential(
                mechanism, mechanism.salted_password(PASSWORD, SALT, ITERATIONS), SALT, ITERATIONS
            )
            for mechanism in ScramMechanism
        }

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        return self.credentials[mechanism] if user == USER else None


def validator() -> TokenValidator:
    """Accepts the tokens of one key."""
    keys = KeySet("file:keys", jwks, RefreshTimes(), CLOCK, CLOCK.timer, offload_inline)
    keys.refresh()
    return partial(signed_token, keys, ClaimRules(clock=CLOCK))


USERS = OneUser()
TOKENS = validator()
MECHANISMS = tuple(ScramMechanism)


def seeds() -> Iterator[bytes]:
    """A successful attempt, and one without the password, of each kind."""
    for side, mechanism in enumerate(MECHANISMS):
        for user, password in ((USER, PASSWORD), (USER, "wrong"), ("nobody", PASSWORD)):
            client = ScramSaslClient(mechanism, user, password, "client")
            server = ScramSaslServer(mechanism, USERS, SECRET, "server")
            first = client.first()
            answer = server.evaluate(first)
            final = client.final(answer)
            yield bytes((side,)) + END.join((first, final))
            with contextlib.suppress(SaslFailure):
                yield bytes((CLIENT_SIDE,)) + END.join((answer, server.evaluate(final)))
    yield bytes((PLAIN_SIDE,)) + f"\0{USER}\0{PASSWORD}".encode()
    yield bytes((PLAIN_SIDE,)) + f"{USER}\0{USER}\0wrong".encode()
    yield bytes((BEARER_SIDE,)) + client_first(GOOD_TOKEN)
    refused = signed(claims_of(USER, 0))
    yield bytes((BEARER_SIDE,)) + END.join((client_first(refused), CONTINUE))
    yield bytes((BEARER_SIDE,)) + END.join((client_first(refused), client_first(GOOD_TOKEN)))


def check(data: bytes) -> None:
    """Give the tokens to one side; only the user may be authenticated, PLAIN only by the password, and
    OAUTHBEARER only by the good token.
    """
    if not data:
        return
    side, tokens = data[0] % SIDES, data[1:].split(END)
    if side == CLIENT_SIDE:
        check_client(tokens)
        return
    server = server_of(side)
    for token in tokens:
        try:
            server.evaluate(token)
        except SaslFailure:
            break
        if server.user is not None:
            assert server.user == USER
            assert side != PLAIN_SIDE or token.split(b"\0")[2] == PASSWORD.encode()
            # the last characters of a signature may differ in bits that base64 does not use
            assert side != BEARER_SIDE or GOOD_TOKEN[:-4].encode() in token
            break


def server_of(side: int) -> SaslServer:
    """A new attempt."""
    if side == PLAIN_SIDE:
        return PlainSaslServer(USERS, SECRET)
    if side == BEARER_SIDE:
        return OAuthBearerSaslServer(TOKENS)
    return ScramSaslServer(MECHANISMS[side], USERS, SECRET, "server")


def check_client(tokens: list[bytes]) -> None:
    """Let a client read what a server says."""
    with contextlib.suppress(BadMessage):
        if ServerFirst.read(tokens[0]).iterations > MOST_ITERATIONS:
            return
    client = ScramSaslClient(MECHANISMS[0], USER, PASSWORD, "client")
    with contextlib.suppress(SaslFailure):
        client.final(tokens[0])
        client.finish(tokens[1] if len(tokens) > 1 else b"")
