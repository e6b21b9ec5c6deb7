"""What a protocol has to do for the forwarder."""

from __future__ import annotations

from typing import Protocol

from odradek.plugin import Reject, Retry

MAX_MESSAGE_LENGTH = 120
"""Of what the far side says: it becomes part of a reason, which becomes a label."""


class Transport(Protocol):
    """One destination. ``open`` works while the far side is down; ``close`` without ``open`` and twice."""

    async def open(self) -> None:
        """Make the client; runs on the forwarder's loop."""

    async def send(self, body: bytes) -> bytes:
        """Send one serialized ``ExportMetricsServiceRequest``.

        Returns:
            The serialized ``ExportMetricsServiceResponse``, or nothing when the far side sent none.

        Raises:
            Retry: The far side cannot take it now, or is not there.
            Reject: It will never take it.
        """

    async def close(self) -> None:
        """Let go of connections."""


def refusal(title: str, message: str, retryable: bool, after_s: float | None) -> Retry | Reject:
    """The error for an answer that is not success."""
    text = " ".join(message.split())[:MAX_MESSAGE_LENGTH]
    reason = f"{title}: {text}" if text else title
    return Retry(reason, after_s) if retryable else Reject(reason)
