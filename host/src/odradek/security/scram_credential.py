"""The stored form of a password: enough to check it, not enough to log in with."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Protocol

from odradek.security.scram import DEFAULT_ITERATIONS, ScramMechanism

SALT_BYTES = 16


@dataclass(frozen=True, slots=True, repr=False)
class ScramCredential:
    """The credential of a user for one mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class CredentialLookup(Protocol):
    """Access to credentials for SASL servers. Called from any thread."""

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        """The credential of a user; None if there is none."""


def salted_credential(
    mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """The credential of a password that the client has salted."""
    return ScramCredential(
        salt, mechanism.stored_key(salted_password), mechanism.server_key(salted_password), iterations
    )


def is_password(mechanism: ScramMechanism, credential: ScramCredential, password: str) -> bool:
    """Whether the credential matches this password. Takes milliseconds."""
    salted = mechanism.salted_password(password, credential.salt, credential.iterations)
    return hmac.compare_digest(mechanism.stored_key(salted), credential.stored_key)


def decoy(mechanism: ScramMechanism, user: str, secret: bytes) -> ScramCredential:
    """A credential that matches no password, for a user without one.

    It is the same each time, so a client cannot find out which users exist, except by a number of iterations
    that is not the default.
    """
    digest = mechanism.hmac(secret, user.encode())
    return ScramCredential(
        digest[:SALT_BYTES],
        mechanism.hash(b"stored" + digest),
        mechanism.hash(b"server" + digest),
        DEFAULT_ITERATIONS,
    )
