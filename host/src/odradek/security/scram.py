"""The arithmetic of SCRAM (RFC 5802 section 3, RFC 7677).

Names and passwords are UTF-8 without SASLprep, as in Kafka (ScramFormatter.java).
"""

from __future__ import annotations

import hashlib
import hmac
from enum import IntEnum

MIN_ITERATIONS = 4096  # ScramMechanism.minIterations
MAX_ITERATIONS = 16_384  # ScramControlManager.MAX_ITERATIONS
DEFAULT_ITERATIONS = 4096  # ConfigCommand.DefaultScramIterations


class ScramMechanism(IntEnum):
    """The mechanisms, with Kafka's numbers."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The SASL name: ``SCRAM-SHA-256``."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        return f"sha{self.name[-3:]}"

    def hash(self, data: bytes) -> bytes:
        """H of the RFC."""
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """HMAC of the RFC."""
        return hmac.digest(key, data, self.hash_name)

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Hi of the RFC. Takes up to 10 ms with `MAX_ITERATIONS` and releases the interpreter's lock."""
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)

    def client_key(self, salted_password: bytes) -> bytes:
        """The key that a client proves to have."""
        return self.hmac(salted_password, b"Client Key")

    def stored_key(self, salted_password: bytes) -> bytes:
        """The key that a server checks the client's proof with."""
        return self.hash(self.client_key(salted_password))

    def server_key(self, salted_password: bytes) -> bytes:
        """The key that a server proves to have."""
        return self.hmac(salted_password, b"Server Key")


def xor(left: bytes, right: bytes) -> bytes:
    """Bitwise exclusive or of two values of the same length."""
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def mechanism_named(name: str) -> ScramMechanism | None:
    """The mechanism with a SASL name; None if it is not a SCRAM mechanism."""
    return next((each for each in ScramMechanism if each.mechanism_name == name), None)
