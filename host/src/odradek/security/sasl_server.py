"""What every SASL mechanism is to the host: tokens in, tokens out, and a name at the end."""

from __future__ import annotations

from typing import ClassVar, Protocol


class SaslFailure(Exception):
    """The client could not prove who it is.

    Args:
        why: For the log.
        message: For the client; None where Kafka tells it no more than that it failed.
    """

    def __init__(self, why: str, message: str | None = None) -> None:
        super().__init__(why)
        self.message = message


class SaslServer(Protocol):
    """One attempt of one client. Used by one thread at a time."""

    costly: ClassVar[bool]
    """Whether `evaluate` takes milliseconds, so that it must not run on the loop."""
    user: str | None
    """The name that was proved; None until then."""

    def evaluate(self, token: bytes) -> bytes:
        """The answer to a token of the client.

        Raises:
            SaslFailure: This was the last token of this attempt.
        """
