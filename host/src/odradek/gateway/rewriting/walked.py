"""Responses with many partitions: everything passes, except the endpoints at their end."""

from __future__ import annotations

from collections.abc import Callable

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import BROKEN, INT32
from odradek.gateway.rewriting.rewriter import MalformedResponse
from odradek.gateway.rewriting.walks import ATOM_BYTES, Walker
from odradek.wire.errors import WireError

WINDOW_BYTES = 16_384
"""Copied for the walk, which reads single bytes: that is faster in bytes than in a view. Smaller windows cost
more if partitions have a kilobyte of records each, larger ones if they have many."""
Tail = Callable[[bytes, Addresses, bool], bytes]
"""Rewrites the end of a response, within its size if the flag is set."""


class WalkedRewriter:
    """Rewrites the end of one response.

    Unless ``exact``, bytes leave as they come, except for the end part, which keeps its size, and for fewer
    than `ATOM_BYTES` that the walk needs together with the next ones. If ``exact``, nothing leaves before the
    last byte has come, and the end part may change its size.
    """

    __slots__ = (
        "addresses", "error_code", "exact", "fed", "held", "hold_bytes", "kept", "sent", "size", "tail",
        "tail_at", "throttle_ms", "walk", "wanted",
    )  # fmt: skip

    def __init__(
        self, size: int, walker: Walker, tail: Tail, addresses: Addresses, hold_bytes: int, exact: bool
    ) -> None:
        self.size = size
        self.tail = tail
        self.addresses = addresses
        self.hold_bytes = hold_bytes
        self.exact = exact
        self.error_code: int | None = None
        self.throttle_ms: int | None = None
        self.fed = 0
        self.sent = 0
        """Bytes of the response before the held ones."""
        self.wanted = 0
        """The position where the walk goes on."""
        self.tail_at: int | None = None
        self.held = b""
        """Bytes from `sent` on that came with earlier chunks."""
        self.kept = bytearray()
        """If `exact`, what will leave with the last chunk."""
        self.walk = walker(self)
        next(self.walk)

    @property
    def held_bytes(self) -> int:
        return len(self.kept) + len(self.held)

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now.

        Raises:
            MalformedResponse: The response does not parse, or its held part exceeds the bound.
        """
        base, self.fed = self.fed, self.fed + len(chunk)
        if self.exact and self.size > self.hold_bytes:
            raise MalformedResponse(f"{self.size} bytes are more than {self.hold_bytes}")
        try:
            if self.tail_at is None:
                self.advance(chunk, base)
            return self.passed(chunk, base)
        except BROKEN as error:
            raise MalformedResponse(f"response of {self.size} bytes: {error}") from error

    def advance(self, chunk: memoryview, base: int) -> None:
        """Walk as far as the bytes reach.

        Raises:
            WireError: The walk leads out of the response.
        """
        end, size = self.fed, self.size
        while self.wanted < end or end == size:
            at = self.wanted
            if at < base:
                window = self.held[at - self.sent :] + bytes(chunk[:ATOM_BYTES])
            else:
                window = bytes(chunk[at - base : at - base + WINDOW_BYTES])
            limit = len(window)
            if at + limit < size:
                limit -= ATOM_BYTES
                if limit < 0:
                    return
            try:
                self.wanted = at + self.walk.send((window, limit))
            except StopIteration as done:
                self.tail_at = at + done.value
                if size - self.tail_at > self.hold_bytes:
                    raise WireError(f"{size - self.tail_at} bytes follow the partitions") from None
                return
            if self.wanted > size:
                raise WireError(f"a field ends at {self.wanted}")

    def passed(self, chunk: memoryview, base: int) -> list[bytes | memoryview]:
        """Return the bytes that the walk has passed, and the end once it is complete."""
        upto = min(self.fed, self.wanted if self.tail_at is None else self.tail_at)
        out: list[bytes | memoryview] = []
        if not self.exact and base == 0:
            out.append(INT32.pack(self.size))
        before = self.held[: upto - self.sent]
        if before:
            out.append(before)
        if upto > base:
            out.append(chunk[: upto - base])
        self.held = self.held[len(before) :] + bytes(chunk[max(upto - base, 0) :])
        self.sent = upto
        if self.fed < self.size:
            return self.keep(out) if self.exact else out
        out.append(self.tail(self.held, self.addresses, not self.exact))
        return self.whole(out) if self.exact else out

    def keep(self, pieces: list[bytes | memoryview]) -> list[bytes | memoryview]:
        """Hold pieces until the end, as copies."""
        for piece in pieces:
            self.kept += piece
        return []

    def whole(self, pieces: list[bytes | memoryview]) -> list[bytes | memoryview]:
        """Return the complete response, its length first."""
        out: list[bytes | memoryview] = [bytes(self.kept), *pieces] if self.kept else pieces
        return [INT32.pack(sum(len(piece) for piece in out)), *out]
