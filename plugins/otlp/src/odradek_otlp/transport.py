"""The interface between the forwarder and a protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from odradek.endpoints import titled
from odradek.plugin import Reject, Retry


class Transport(Protocol):
    """One destination. ``open`` succeeds while it is down; ``close`` may come without ``open``, and twice."""

    async def open(self) -> None:
        """Create the client; runs on the forwarder's loop."""

    async def refresh(self) -> None:
        """Switch to renewed certificates. Called while no request is in flight."""

    async def send(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Send one serialized ``ExportMetricsServiceRequest``. Several may be in flight.

        Returns:
            The serialized ``ExportMetricsServiceResponse``; empty if the endpoint sent none.

        Raises:
            Retry: The endpoint is unreachable or cannot accept the request now; `Unauthorized` if it refused
                the credentials, `Misdirected` if the address is wrong.
            Reject: The endpoint will never accept the request.
        """

    async def close(self) -> None:
        """Close all connections."""


def refusal(title: str, message: str, retryable: bool, after_s: float | None) -> Retry | Reject:
    """The error for a response other than success."""
    reason = titled(title, message)
    return Retry(reason, after_s) if retryable else Reject(reason)
