"""The host's side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802), after ScramSaslServer.java.

There is no channel binding, and extensions are passed over, those of delegation tokens included.
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
    """One attempt: two tokens, two answers.

    Args:
        scram: Which of the two.
        credentials: Where the users are.
        secret: Makes credentials for users who have none, see `decoy`.
        nonce: A text that nobody can foresee, without commas.
    """

    costly: ClassVar[bool] = False

    def __init__(
        self, scram: ScramMechanism, credentials: CredentialLookup, secret: bytes, nonce: str
    ) -> None:
        self.scram = scram
        self.credentials = credentials
        self.secret = secret
        self.nonce = nonce
        self.user: str | None = None
        self.first: ClientFirst | None = None
        self.credential: ScramCredential | None = None
        self.server_first = ""

    def evaluate(self, token: bytes) -> bytes:
        """Answer the first message, then the final one."""
        if self.user is not None:
            raise SaslFailure("a token behind the last")
        try:
            if self.first is None:
                return self.answer_first(ClientFirst.read(token))
            return self.answer_final(ClientFinal.read(token), self.first)
        except BadMessage as error:
            raise SaslFailure(str(error)) from None

    def answer_first(self, first: ClientFirst) -> bytes:
        """Tell salt, iterations and our half of the nonce."""
        if first.authorization_id not in ("", first.user):
            raise SaslFailure("another authorization id", OTHER_AUTHORIZATION_ID)
        credential = self.credentials.credential(self.scram, first.user)
        self.credential = credential or decoy(self.scram, first.user, self.secret)
        self.first = first
        message = ServerFirst(first.nonce + self.nonce, self.credential.salt, self.credential.iterations)
        self.server_first = message.text()
        return self.server_first.encode()

    def answer_final(self, final: ClientFinal, first: ClientFirst) -> bytes:
        """Check the proof and give ours."""
        assert self.credential is not None
        if final.channel_binding != first.gs2_header.encode():
            raise SaslFailure("another header than in the first message")
        if final.nonce != first.nonce + self.nonce:
            raise SaslFailure("another nonce")
        exchange = f"{first.bare},{self.server_first},{final.without_proof}".encode()
        signature = self.scram.hmac(self.credential.stored_key, exchange)
        if len(final.proof) != len(signature):
            raise SaslFailure("a proof of another length")
        stored_key = self.scram.hash(xor(final.proof, signature))
        if not hmac.compare_digest(stored_key, self.credential.stored_key):
            raise SaslFailure("wrong password")
        self.user = first.user
        return f"v={encoded(self.scram.hmac(self.credential.server_key, exchange))}".encode()
