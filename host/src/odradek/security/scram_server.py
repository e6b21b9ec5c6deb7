"""The server side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802), after ScramSaslServer.java.

Channel binding is not supported. Extensions are ignored, those of delegation tokens included.
"""

from __future__ import annotations

import hmac
from typing import ClassVar

from odradek.security.plain_server import OTHER_AUTHORIZATION_ID
from odradek.security.sasl_server import SaslFailure
from odradek.security.scram import ScramMechanism, xor
from odradek.security.scram_credential import CredentialLookup, ScramCredential, decoy
from odradek.security.scram_messages import BadMessage, ClientFinal, ClientFirst, ServerFirst, encoded


class ScramSaslServer:
    """One authentication attempt: two tokens, two responses.

    Args:
        scram: The mechanism.
        credentials: The credentials of the users.
        secret: Used to invent credentials for users without any, see `decoy`.
        nonce: An unpredictable string without commas.
    """

    costly: ClassVar[bool] = False
    expires_ms: int | None = None
    doubt: str | None = None

    def __init__(
        self, scram: ScramMechanism, credentials: CredentialLookup, secret: bytes, nonce: str
    ) -> None:
        self.scram = scram
        self.credentials = credentials
        self.secret = secret
        self.nonce = nonce
        self.user: str | None = None
        self.claimed: str | None = None
        self.first: ClientFirst | None = None
        self.credential: ScramCredential | None = None
        self.server_first = ""

    def evaluate(self, token: bytes) -> bytes:
        """Respond to the first message, then to the final one."""
        if self.user is not None:
            raise SaslFailure("a token after the final one")
        try:
            if self.first is None:
                return self.answer_first(ClientFirst.read(token))
            return self.answer_final(ClientFinal.read(token), self.first)
        except BadMessage as error:
            raise SaslFailure(str(error)) from None

    def answer_first(self, first: ClientFirst) -> bytes:
        """Send the salt, the iterations and the server's part of the nonce."""
        self.claimed = first.user
        if first.authorization_id not in ("", first.user):
            raise SaslFailure("the authorization id is not the user name", OTHER_AUTHORIZATION_ID)
        credential = self.credentials.credential(self.scram, first.user)
        # An unknown user fails at the proof, like a wrong password.
        self.credential = credential or decoy(self.scram, first.user, self.secret)
        self.first = first
        message = ServerFirst(first.nonce + self.nonce, self.credential.salt, self.credential.iterations)
        self.server_first = message.text()
        return self.server_first.encode()

    def answer_final(self, final: ClientFinal, first: ClientFirst) -> bytes:
        """Check the client's proof and return the server's."""
        assert self.credential is not None
        if final.channel_binding != first.gs2_header.encode():
            raise SaslFailure("the header differs from the first message")
        if final.nonce != first.nonce + self.nonce:
            raise SaslFailure("the nonce differs from the first message")
        exchange = f"{first.bare},{self.server_first},{final.without_proof}".encode()
        signature = self.scram.hmac(self.credential.stored_key, exchange)
        if len(final.proof) != len(signature):
            raise SaslFailure("the proof has the wrong length")
        stored_key = self.scram.hash(xor(final.proof, signature))
        if not hmac.compare_digest(stored_key, self.credential.stored_key):
            raise SaslFailure("wrong password")
        self.user = first.user
        return f"v={encoded(self.scram.hmac(self.credential.server_key, exchange))}".encode()
