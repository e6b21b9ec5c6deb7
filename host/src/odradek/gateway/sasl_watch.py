"""Watches the SASL exchange of a pair: the name of the client, and when the broker has accepted it.

Nothing is decided for the broker here. Tokens are looked at and forgotten.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Final

from odradek.gateway.pair_identity import ANONYMOUS, PairIdentity
from odradek.security.oauth.bearer_message import BadBearerMessage, BearerMessage
from odradek.security.scram_messages import BadMessage, ClientFirst

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
PASSING: Final = (PLAIN, *SCRAM, OAUTHBEARER)
CANNOT_PASS: Final = {
    "GSSAPI": "a Kerberos ticket is for the host that the client dialed, which is the gateway",
    "AWS_MSK_IAM": "its tokens are signed for the host that the client dialed, which is the gateway",
}
"""Mechanisms that cannot work through a gateway, and why."""
SCRAM_ROUNDS: Final = 2
DELEGATED: Final = ",tokenauth=true"
SERVER_ACCEPTS: Final = b"v="
LoginRefused = Callable[[PairIdentity, str, str | None], None]


def nobody_asks(_identity: PairIdentity, _mechanism: str, _user: str | None) -> None:
    """Tell nobody."""


class SaslWatch:
    """The state of one pair.

    Args:
        identity: Gets the principal.
        subject_claim: The claim of a token that names its owner: `sasl.oauthbearer.sub.claim.name`.
        refused: Told of a client, its mechanism and the user that it named when the broker refuses it.
    """

    __slots__ = (
        "identity", "mechanism", "name", "raw_rounds", "refused", "rounds", "subject_claim", "trusted",
        "version",
    )  # fmt: skip

    def __init__(
        self, identity: PairIdentity, subject_claim: str = "sub", refused: LoginRefused = nobody_asks
    ) -> None:
        self.identity = identity
        self.refused = refused
        self.subject_claim = subject_claim
        self.mechanism = ""
        self.version = 1
        """The version of the last SaslHandshake."""
        self.name: str | None = None
        """The name in the client's first token; not believed yet."""
        self.rounds = 0
        self.raw_rounds = 0
        """How many tokens without a header the client will still send, after SaslHandshake v0."""
        self.trusted = False
        """The broker has accepted the client; it stays so while the client authenticates again."""

    def handshake(self, mechanism: str, version: int) -> None:
        """The client has chosen a mechanism."""
        self.identity.awaiting_sasl = not self.trusted
        self.mechanism = mechanism
        self.version = version
        self.name = None
        self.rounds = 0

    def handshake_answered(self, error_code: int) -> None:
        """The broker has answered the handshake."""
        if error_code:
            self.refused(self.identity, self.mechanism, None)
        elif self.version == 0:
            self.raw_rounds = SCRAM_ROUNDS if self.mechanism in SCRAM else 1

    def token(self, token: bytes) -> None:
        """The client has sent a token."""
        self.rounds += 1
        if self.rounds == 1:
            self.name = self.name_in(token)

    def token_answered(self, accepted: bool, answer: bytes) -> None:
        """The broker has answered a token.

        Args:
            accepted: The answer has no error.
            answer: The token of the answer.
        """
        if not accepted:
            self.fail()
        elif self.is_last(answer):
            self.succeed()

    def raw_token(self, token: bytes) -> None:
        """The client has sent a token without a header."""
        self.raw_rounds -= 1
        self.token(token)

    def raw_answered(self, answer: bytes) -> None:
        """The broker has answered a token without a header."""
        if self.mechanism in SCRAM and self.rounds == SCRAM_ROUNDS:
            self.token_answered(answer.startswith(SERVER_ACCEPTS), answer)
            return
        if self.mechanism == OAUTHBEARER and answer:
            if self.rounds == 1:
                self.raw_rounds = 1  # the client answers the reason of the refusal, and the broker closes
            self.fail()
            return
        self.token_answered(True, answer)

    def is_last(self, answer: bytes) -> bool:
        """Whether this answer without an error ends the exchange."""
        if self.mechanism in SCRAM:
            return self.rounds >= SCRAM_ROUNDS
        if self.mechanism == OAUTHBEARER:
            return not answer  # otherwise it is the reason of a refusal
        return True

    def succeed(self) -> None:
        """The broker has accepted the client."""
        self.trusted = True
        self.identity.awaiting_sasl = False
        if self.name:
            self.identity.principal = f"User:{self.name}"
            self.identity.principal_source = "sasl"
        self.name = None

    def fail(self) -> None:
        """The broker has refused the client."""
        self.refused(self.identity, self.mechanism, self.name)
        self.trusted = False
        self.identity.awaiting_sasl = True
        self.name = None
        self.identity.principal = ANONYMOUS
        self.identity.principal_source = "none"

    def name_in(self, token: bytes) -> str | None:
        """Return the name in a client's first token; None if the mechanism shows none."""
        try:
            if self.mechanism == PLAIN:
                return token.decode().split("\0")[1]
            if self.mechanism in SCRAM:
                first = ClientFirst.read(token)
                return None if DELEGATED in first.bare else first.user
            if self.mechanism == OAUTHBEARER:
                return subject(BearerMessage.read(token).token, self.subject_claim)
        except (BadMessage, BadBearerMessage, UnicodeDecodeError, IndexError):
            pass
        return None


def subject(token: str, claim: str) -> str | None:
    """Return a claim of a JWT, whose signature the broker checks; None if the token is opaque."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    name = claims.get(claim) if isinstance(claims, dict) else None
    return name if isinstance(name, str) else None
