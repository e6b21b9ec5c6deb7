"""Responses that are held until they can be rewritten in one go."""

from __future__ import annotations

import struct

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.addressed_layout import AddressedLayout
from odradek.gateway.rewriting.fields import BROKEN, INT32
from odradek.gateway.rewriting.rewriter import MalformedResponse
from odradek.wire.errors import Truncated

INCOMPLETE = (Truncated, IndexError, struct.error)


class HeldRewriter:
    """Rewrites one response once all of it has come, or, if its rest passes, once all its nodes have come.

    Args:
        size: The int32 length of the response.
        layout: Its version, compiled.
        addresses: The advertised addresses.
        hold_bytes: How much may be held.
        rest_passes: Whether what follows the nodes passes as it comes.
    """

    __slots__ = (
        "addresses", "error_code", "fed", "held", "hold_bytes", "is_done", "layout", "rest_passes", "size",
        "throttle_ms", "wanted",
    )  # fmt: skip

    def __init__(
        self, size: int, layout: AddressedLayout, addresses: Addresses, hold_bytes: int, rest_passes: bool
    ) -> None:
        self.size = size
        self.layout = layout
        self.addresses = addresses
        self.hold_bytes = hold_bytes
        self.rest_passes = rest_passes
        self.error_code: int | None = None
        self.throttle_ms: int | None = None
        self.wanted = 0 if rest_passes else size
        """So many bytes must have come before they are looked at."""
        self.held = bytearray()
        self.fed = 0
        self.is_done = False

    @property
    def held_bytes(self) -> int:
        return len(self.held)

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now.

        Raises:
            MalformedResponse: The response does not parse, or exceeds the bound.
        """
        if self.is_done:
            return [chunk]
        if not self.rest_passes and self.size > self.hold_bytes:
            raise MalformedResponse(f"{self.size} bytes are more than {self.hold_bytes}")
        self.fed += len(chunk)
        if self.fed < self.size or self.held:
            self.held += chunk
        if self.fed < self.wanted and self.fed <= self.hold_bytes:
            return []
        try:
            return self.rewritten(bytes(self.held or chunk))
        except BROKEN as error:
            raise MalformedResponse(f"response of {self.size} bytes: {error}") from error

    def rewritten(self, frame: bytes) -> list[bytes | memoryview]:
        """Rewrite what has come; return nothing if the nodes are not complete.

        Raises:
            WireError: They never will be, or not within the bound.
        """
        if not self.rest_passes:
            done = self.layout.rewritten(frame, self.addresses)
        else:
            try:
                done = self.layout.beginning(frame, self.addresses)
            except INCOMPLETE:
                if self.fed >= self.size:
                    raise
                if self.fed > self.hold_bytes:
                    raise Truncated(f"the nodes do not end within {self.hold_bytes} bytes") from None
                self.wanted = min(2 * self.fed, self.size)  # so that many small pieces are not read often
                return []
        self.is_done, self.held = True, bytearray()
        self.error_code, self.throttle_ms = done.error_code, done.throttle_ms
        rest = memoryview(frame)[done.upto :]
        size = self.size - done.upto + len(done.frame)
        return [INT32.pack(size), done.frame, rest] if rest else [INT32.pack(size), done.frame]
