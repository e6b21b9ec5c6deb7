"""The interface of SASL mechanisms: tokens in, tokens out, and an authenticated user at the end."""

from __future__ import annotations

from typing import ClassVar, Protocol

from odradek.waiting.kept_error import KeptError


class SaslFailure(KeptError):
    """The client could not be authenticated.

    Args:
        why: The reason, for the log.
        message: The message for the client; None if Kafka only tells it that authentication failed.
        counted: The reason was counted and logged before, as the `SaslServer.doubt` of a token.
    """

    def __init__(self, why: str, message: str | None = None, *, counted: bool = False) -> None:
        super().__init__(why)
        self.message = message
        self.counted = counted


class SaslServer(Protocol):
    """One authentication attempt of one client. Used by one thread at a time."""

    costly: ClassVar[bool]
    """Whether `evaluate` takes milliseconds and must not run on the loop."""
    user: str | None
    """The authenticated user; None until authentication succeeds."""
    claimed: str | None
    """The user that the client claims to be, for the log; None until it names one."""
    expires_ms: int | None
    """When the user's credential expires, epoch milliseconds of wall time; None if it does not."""
    doubt: str | None
    """Why the latest token was not accepted although the attempt goes on, for the log; None otherwise."""

    def evaluate(self, token: bytes) -> bytes:
        """Return the response to a token from the client.

        Raises:
            SaslFailure: The attempt has failed; no further token is accepted.
        """
