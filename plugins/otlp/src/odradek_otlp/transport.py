"""The interface between the forwarder and a protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from odradek.plugin import Reject, Retry

MAX_MESSAGE_LENGTH = 180
"""Limit of the endpoint's message, which becomes part of a reason and so of a metric's label."""


class Unauthorized(Retry):
    """The endpoint refused the credentials: 401, 403, UNAUTHENTICATED, PERMISSION_DENIED.

    The specification calls this final. Here it is retried: the push is not at fault, and an operator can fix
    the credentials.
    """


class Misdirected(Retry):
    """The address is not that of an OTLP endpoint: a redirect, an unknown path, or an answer that is not
    OTLP.

    The specification calls most of these final. Here they are retried: the push is not at fault, and an
    operator can correct the address.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; correct the endpoint in the plugin's table")


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


def titled(title: str, message: str) -> str:
    """The title, and one line of the endpoint's message."""
    text = " ".join(message.split())[:MAX_MESSAGE_LENGTH]
    return f"{title}: {text}" if text else title
