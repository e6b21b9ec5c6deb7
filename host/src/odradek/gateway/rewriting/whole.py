"""Small responses: held until they are complete, then rewritten in one go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import BROKEN, INT32
from odradek.gateway.rewriting.rewriter import MalformedResponse


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new bytes of a response from its correlation id on, and what was read in passing."""

    frame: bytes
    error_code: int | None
    throttle_ms: int | None


Rewrite = Callable[[bytes, Addresses], Rewritten]


class WholeRewriter:
    """Rewrites one response once all of it has come."""

    __slots__ = ("addresses", "error_code", "held", "hold_bytes", "rewrite", "size", "throttle_ms", "wanted")

    def __init__(self, size: int, rewrite: Rewrite, addresses: Addresses, hold_bytes: int) -> None:
        self.size = size
        self.rewrite = rewrite
        self.addresses = addresses
        self.hold_bytes = hold_bytes
        self.error_code: int | None = None
        self.throttle_ms: int | None = None
        self.wanted = size
        self.held = bytearray()

    @property
    def held_bytes(self) -> int:
        return len(self.held)

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now.

        Raises:
            MalformedResponse: The response does not parse, or exceeds the bound.
        """
        if self.size > self.hold_bytes:
            raise MalformedResponse(f"{self.size} bytes are more than {self.hold_bytes}")
        self.wanted -= len(chunk)
        if self.wanted > 0 or self.held:
            self.held += chunk
        if self.wanted > 0:
            return []
        try:
            done = self.rewrite(bytes(self.held or chunk), self.addresses)
        except BROKEN as error:
            raise MalformedResponse(f"response of {self.size} bytes: {error}") from error
        self.held = bytearray()
        self.error_code, self.throttle_ms = done.error_code, done.throttle_ms
        return [INT32.pack(len(done.frame)), done.frame]
