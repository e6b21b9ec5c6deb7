"""A token that was accepted, and the reason that one was not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

INVALID_TOKEN = "invalid_token"  # noqa: S105  a status of RFC 6750
INSUFFICIENT_SCOPE = "insufficient_scope"


@dataclass(frozen=True, slots=True)
class BearerToken:
    """The claims of a token that matter to the host."""

    principal_name: str
    expires_ms: int
    """Wall time, epoch milliseconds."""


class TokenRefused(Exception):
    """A token is not accepted.

    Args:
        why: The reason, for the log. The client only gets the status.
        status: An error code of RFC 6750.
        scope: The scope that the token would need; None if that is not the reason.
    """

    def __init__(self, why: str, status: str = INVALID_TOKEN, scope: str | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.scope = scope


TokenValidator = Callable[[str], BearerToken]
"""Returns the claims of a token that is accepted, else raises `TokenRefused`. Never blocks: it may run on the
loop."""
