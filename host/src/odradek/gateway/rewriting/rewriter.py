"""The interface of a rewriter: one response in, in pieces, and what the client receives out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class MalformedResponse(Exception):
    """A response cannot be parsed. The pair must close: passing the bytes on could leak an address."""


@dataclass(frozen=True, slots=True)
class HoldLimits:
    """How much of a response a rewriter may hold."""

    response_bytes: int = 1 << 20
    """The setting `gateway.hold.bytes`."""


class Rewriter(Protocol):
    """Rewrites one response."""

    error_code: int | None
    """The top-level error code, once it was read; None for a response without one."""
    throttle_ms: int | None

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now.

        The bytes start at the correlation id. The first bytes that come out are the new int32 length. After
        the last byte of the response has been fed, everything has been returned.

        Raises:
            MalformedResponse: The response does not parse.
        """
