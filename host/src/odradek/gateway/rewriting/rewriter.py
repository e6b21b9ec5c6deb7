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
    exact_fetch_bytes: int = 1 << 16
    """The largest Fetch or ShareFetch response that is held until its end. Its size may then change."""


class Seen(Protocol):
    """The fields of a response that were read on the way."""

    @property
    def error_code(self) -> int | None:
        """The first error code that was read, of the response or of a partition; 0 without an error, None if
        no error code was read.
        """

    @property
    def throttle_ms(self) -> int | None:
        """The throttle time, None if it was not read."""


class Rewriter(Seen, Protocol):
    """Rewrites one response."""

    @property
    def held_bytes(self) -> int:
        """The bytes of the response that are held."""

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now.

        The bytes start at the correlation id. The first bytes that come out are the new int32 length. After
        the last byte of the response has been fed, everything has been returned. Returned views point into
        ``chunk``; what is returned by a later call does not.

        Raises:
            MalformedResponse: The response does not parse.
        """
