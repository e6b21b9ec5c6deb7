"""The client side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802). It authenticates the server, too."""

from __future__ import annotations

import hmac

from odradek.security.sasl_server import SaslFailure
from odradek.security.scram import MIN_ITERATIONS, ScramMechanism, xor
from odradek.security.scram_messages import BadMessage, ServerFinal, ServerFirst, encoded, escaped

GS2_HEADER = "n,,"
MAX_ITERATIONS_OF_SERVERS = 1_000_000
"""Takes half a second. Kafka accepts at most 16 384, but an old credential may have more."""


class ScramSaslClient:
    """One authentication attempt.

    Args:
        scram: The mechanism.
        user: The user name.
        password: The password, which is not sent.
        nonce: An unpredictable string without commas.
    """

    def __init__(self, scram: ScramMechanism, user: str, password: str, nonce: str) -> None:
        self.scram = scram
        self.password = password
        self.nonce = nonce
        self.first_bare = f"n={escaped(user)},r={nonce}"
        self.server_signature = b""

    def first(self) -> bytes:
        """The first message."""
        return f"{GS2_HEADER}{self.first_bare}".encode()

    def final(self, token: bytes) -> bytes:
        """The final message with the proof, in response to the server's first message.

        Raises:
            SaslFailure: The message is malformed, or asks for too few or too many iterations.
        """
        try:
            server = ServerFirst.read(token)
        except BadMessage as error:
            raise SaslFailure(f"the server's first message: {error}") from None
        if not server.nonce.startswith(self.nonce) or server.nonce == self.nonce:
            raise SaslFailure("the server did not continue our nonce")
        if not MIN_ITERATIONS <= server.iterations <= MAX_ITERATIONS_OF_SERVERS:
            raise SaslFailure(f"the server asks for {server.iterations} iterations")
        salted = self.scram.salted_password(self.password, server.salt, server.iterations)
        without_proof = f"c={encoded(GS2_HEADER.encode())},r={server.nonce}"
        exchange = f"{self.first_bare},{token.decode()},{without_proof}".encode()
        client_key = self.scram.client_key(salted)
        proof = xor(client_key, self.scram.hmac(self.scram.hash(client_key), exchange))
        self.server_signature = self.scram.hmac(self.scram.server_key(salted), exchange)
        return f"{without_proof},p={encoded(proof)}".encode()

    def finish(self, token: bytes) -> None:
        """Check the server's proof.

        Raises:
            SaslFailure: The server does not know the password.
        """
        try:
            server = ServerFinal.read(token)
        except BadMessage as error:
            raise SaslFailure(f"the server's final message: {error}") from None
        if server.error is not None:
            raise SaslFailure(f"the server says {server.error}")
        if not hmac.compare_digest(server.signature, self.server_signature):
            raise SaslFailure("the server cannot prove that it knows the password")
