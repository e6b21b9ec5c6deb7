"""What a protocol has to do for the forwarder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from odradek.plugin import Reject, Retry

MAX_MESSAGE_LENGTH = 180
"""Of what the far side says: it becomes part of a reason, which becomes a label."""


class Unauthorized(Retry):
    """The far side does not let us in: 401, 403, UNAUTHENTICATED, PERMISSION_DENIED.

    Final for the specification; but it is not the push that is to blame, and an operator can mend it.
    """


class Transport(Protocol):
    """One destination. ``open`` works while the far side is down; ``close`` without ``open`` and twice."""

    async def open(self) -> None:
        """Make the client; runs on the forwarder's loop."""

    async def refresh(self) -> None:
        """Use certificates that changed. Called while nothing is in flight."""

    async def send(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Send one serialized ``ExportMetricsServiceRequest``. Several may be in flight.

        Returns:
            The serialized ``ExportMetricsServiceResponse``, or nothing when the far side sent none.

        Raises:
            Retry: The far side cannot take it now, or is not there; `Unauthorized` if it does not let us in.
            Reject: It will never take it.
        """

    async def close(self) -> None:
        """Let go of connections."""


def refusal(title: str, message: str, retryable: bool, after_s: float | None) -> Retry | Reject:
    """The error for an answer that is not success."""
    reason = titled(title, message)
    return Retry(reason, after_s) if retryable else Reject(reason)


def titled(title: str, message: str) -> str:
    """What happened, and one line of what the far side said about it."""
    text = " ".join(message.split())[:MAX_MESSAGE_LENGTH]
    return f"{title}: {text}" if text else title
