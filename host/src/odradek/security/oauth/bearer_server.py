"""The server side of OAUTHBEARER (RFC 7628), after OAuthBearerSaslServer.java.

A refused token is answered with an error challenge. The client then ends the attempt, or sends another token.
"""

from __future__ import annotations

from typing import ClassVar, Final

from odradek.security.oauth.bearer_message import (
    CONTINUE,
    BadBearerMessage,
    BearerMessage,
    error_challenge,
)
from odradek.security.oauth.bearer_token import TokenRefused, TokenValidator
from odradek.security.sasl_server import SaslFailure

MOST_REFUSED: Final = 4
"""Refused tokens of one attempt; Kafka has no limit."""


class OAuthBearerSaslServer:
    """One authentication attempt: one token, or a few if the first ones are refused.

    Args:
        validator: Decides which tokens are accepted.
    """

    costly: ClassVar[bool] = False

    def __init__(self, validator: TokenValidator) -> None:
        self.validator = validator
        self.user: str | None = None
        self.claimed: str | None = None
        self.expires_ms: int | None = None
        self.doubt: str | None = None
        self.challenge = ""
        """The error that the client was told last; empty if there is none."""
        self.refused = 0

    def evaluate(self, token: bytes) -> bytes:
        """Respond to a message with a token, or to the end of a refused attempt."""
        if self.user is not None:
            raise SaslFailure("a message after the token was accepted")
        if token == CONTINUE and self.challenge:
            raise SaslFailure(self.doubt or "", self.challenge, counted=True)
        self.challenge, self.doubt = "", None
        try:
            message = BearerMessage.read(token)
        except BadBearerMessage as error:
            raise SaslFailure(str(error)) from None
        try:
            accepted = self.validator(message.token)
        except TokenRefused as refusal:
            return self.refuse(refusal)
        name = self.claimed = accepted.principal_name
        if message.authorization_id not in ("", name):
            raise SaslFailure(
                "the authorization id is not the token's principal",
                f"Authentication failed: Client requested an authorization id ({message.authorization_id}) "
                f"that is different from the token's principal name ({name})",
            )
        self.user, self.expires_ms = name, accepted.expires_ms
        return b""

    def refuse(self, refusal: TokenRefused) -> bytes:
        """Return the error challenge for a refused token."""
        challenge = error_challenge(refusal.status, refusal.scope)
        self.refused += 1
        if self.refused > MOST_REFUSED:
            raise SaslFailure(str(refusal), challenge)
        self.challenge, self.doubt = challenge, str(refusal)
        return challenge.encode()
