"""Users for tests: a lookup in memory."""

from __future__ import annotations

from odradek.security.scram import MIN_ITERATIONS, ScramMechanism
from odradek.security.scram_credential import ScramCredential, salted_credential

SECRET = b"of a test"


class KnownUsers:
    """SCRAM credentials by user name, computed from their passwords."""

    def __init__(self, passwords: dict[str, str], *mechanisms: ScramMechanism) -> None:
        self.made = {
            (mechanism, user): credential(mechanism, password)
            for user, password in passwords.items()
            for mechanism in mechanisms or ScramMechanism
        }

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        return self.made.get((mechanism, user))


def credential(
    mechanism: ScramMechanism,
    password: str,
    salt: bytes = b"salt of a test",
    iterations: int = MIN_ITERATIONS,
) -> ScramCredential:
    salted = mechanism.salted_password(password, salt, iterations)
    return salted_credential(mechanism, salted, salt, iterations)
