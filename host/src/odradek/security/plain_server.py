"""The mechanism PLAIN (RFC 4616), which checks the password against the SCRAM credentials of the user.

After PlainSaslServer.java, with its error messages.
"""

from __future__ import annotations

from typing import ClassVar

from odradek.security.sasl_server import SaslFailure
from odradek.security.scram import ScramMechanism
from odradek.security.scram_credential import CredentialLookup, decoy, is_password

OTHER_AUTHORIZATION_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class PlainSaslServer:
    """One authentication attempt: one token with an empty response.

    Args:
        credentials: The credentials of the users.
        secret: Used to invent credentials for users without any, see `decoy`.
    """

    costly: ClassVar[bool] = True
    expires_ms: int | None = None
    doubt: str | None = None

    def __init__(self, credentials: CredentialLookup, secret: bytes) -> None:
        self.credentials = credentials
        self.secret = secret
        self.user: str | None = None
        self.claimed: str | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Check ``[authzid] NUL user NUL password``."""
        try:
            authorization_id, user, password = token.decode().split("\0")
        except ValueError:
            raise SaslFailure("the token is not three UTF-8 strings separated by NUL") from None
        self.claimed = user
        if not user or not password:
            raise SaslFailure("the user name or the password is empty")
        if not self.is_user(user, password):
            raise SaslFailure("wrong password", "Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise SaslFailure("the authorization id is not the user name", OTHER_AUTHORIZATION_ID)
        self.user = user
        return b""

    def is_user(self, user: str, password: str) -> bool:
        """Whether one of the user's credentials matches the password."""
        found = [(each, self.credentials.credential(each, user)) for each in ScramMechanism]
        known = [(mechanism, credential) for mechanism, credential in found if credential is not None]
        if not known:
            # Hash once for an unknown user too: the response time must not tell whether the user exists.
            cheapest = ScramMechanism.SCRAM_SHA_256
            known = [(cheapest, decoy(cheapest, user, self.secret))]
        return any(is_password(mechanism, credential, password) for mechanism, credential in known)
