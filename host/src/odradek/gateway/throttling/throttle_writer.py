"""Puts a throttle time into a response that passes."""

from __future__ import annotations

from typing import Final

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import INT32, LENGTH_BYTES, int32_at
from odradek.gateway.rewriting.rewriter import HoldLimits, Rewriter
from odradek.gateway.rewriting.walked import WalkedRewriter
from odradek.gateway.rewriting.walks import produce_walk
from odradek.gateway.throttling.throttle_place import PLACES
from odradek.wire.errors import WireError
from odradek.wire.varint import skip_tags

PRODUCE: Final = 0
FIRST_THROTTLED_PRODUCE, FIRST_FLEXIBLE_PRODUCE, FIRST_ADDRESSED_PRODUCE = 1, 9, 10
HEADER_END: Final = 8
"""After the length and the correlation id."""
MOST_HEADER_BYTES: Final = 4096
"""A response with more tags than this in its header passes without a throttle time."""


def with_throttle_time(
    api_key: int, version: int, size: int, inner: Rewriter | None, throttle_ms: int, limits: HoldLimits
) -> Rewriter | None:
    """Return the rewriter of a response that has to tell a throttle time.

    Args:
        api_key: The API.
        version: Its version.
        size: The int32 length of the response.
        inner: Rewrites the response otherwise; None if it passes.
        throttle_ms: The throttle time; a larger one of the broker stays.
        limits: How much may be held.

    Returns:
        ``inner`` if the response has no field for the throttle time, or one that is not known.
    """
    if api_key == PRODUCE:
        return throttled_produce(version, size, inner, throttle_ms, limits)
    place = PLACES.get(api_key)
    if place is None or version < place.first:
        return inner
    if version >= place.flexible:
        return ThrottleWriter(size, inner, throttle_ms, place.offset, None)
    return ThrottleWriter(size, inner, throttle_ms, place.offset, HEADER_END + place.offset)


def throttled_produce(
    version: int, size: int, inner: Rewriter | None, throttle_ms: int, limits: HoldLimits
) -> Rewriter | None:
    """`with_throttle_time` for Produce, whose throttle time is the last field."""
    if version < FIRST_THROTTLED_PRODUCE:
        return None
    if version < FIRST_FLEXIBLE_PRODUCE:
        return ThrottleWriter(size, None, throttle_ms, 0, LENGTH_BYTES + size - INT32.size)
    if version < FIRST_ADDRESSED_PRODUCE:
        if size > limits.response_bytes:
            return None
        walk = produce_walk(topic_id=False)
        inner = WalkedRewriter(size, walk, as_it_is, NO_ADDRESSES, limits.response_bytes, exact=True)
    return ProduceThrottleWriter(inner, throttle_ms) if isinstance(inner, WalkedRewriter) else inner


class Unchanged:
    """Passes one response as it is.

    Args:
        size: The int32 length of the response.
    """

    __slots__ = ("size",)

    error_code: int | None = None
    throttle_ms: int | None = None
    held_bytes = 0

    def __init__(self, size: int) -> None:
        self.size = size

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Return the chunk, after the length of the response if it is the first one; see `Rewriter`."""
        size, self.size = self.size, 0
        return [INT32.pack(size), chunk] if size else [chunk]


def unchanged(_version: int, size: int, _addresses: Addresses, _limits: HoldLimits) -> Rewriter:
    """The rewriter of a response that needs none."""
    return Unchanged(size)


class NoAddresses:
    """The addresses of a response without addresses."""

    def advertised(self, node_id: int) -> tuple[str, int] | None:
        """Return None."""
        return None

    def learned(self, node_id: int, host: str, port: int) -> None:
        """Do nothing."""


NO_ADDRESSES: Final = NoAddresses()


def as_it_is(tail: bytes, _addresses: Addresses, _keep_size: bool) -> bytes:
    """The end of a response without addresses."""
    return tail


def raise_throttle(frame: bytearray, at: int, throttle_ms: int) -> None:
    """Put a throttle time in place of a smaller one."""
    if int32_at(frame, at)[0] < throttle_ms:
        INT32.pack_into(frame, at, throttle_ms)


class ThrottleWriter:
    """Writes the throttle time of one response in passing.

    Args:
        size: The int32 length of the response.
        inner: Rewrites the response otherwise; it leaves everything up to the throttle time as it is.
        throttle_ms: The throttle time.
        offset: The place of the field after the header.
        at: The place of the field in what is sent, with the length; None if tags precede it.
    """

    __slots__ = ("at", "fed", "held", "inner", "is_written", "offset", "own_ms", "passed", "size")

    def __init__(
        self, size: int, inner: Rewriter | None, throttle_ms: int, offset: int, at: int | None
    ) -> None:
        self.size = size
        self.inner = inner
        self.own_ms = throttle_ms
        self.offset = offset
        self.at = at
        self.fed = 0
        self.passed = 0
        """Bytes that have left."""
        self.held = b""
        """Bytes that follow them."""
        self.is_written = False

    @property
    def error_code(self) -> int | None:
        """See `Rewriter`."""
        return None if self.inner is None else self.inner.error_code

    @property
    def throttle_ms(self) -> int | None:
        """The broker's throttle time; see `Rewriter`."""
        return None if self.inner is None else self.inner.throttle_ms

    @property
    def held_bytes(self) -> int:
        return len(self.held) + (0 if self.inner is None else self.inner.held_bytes)

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now; see `Rewriter`."""
        if self.inner is not None:
            out = self.inner.feed(chunk)
        elif self.fed:
            out = [chunk]
        else:
            out = [INT32.pack(self.size), chunk]
        self.fed += len(chunk)
        if self.is_written:
            return out
        sent: list[bytes | memoryview] = []
        for piece in out:
            ready = piece if self.is_written else self.written(piece)
            if ready:
                sent.append(ready)
        if self.fed >= self.size and self.held:
            sent.append(self.held)  # the response ends before its throttle time
            self.held = b""
        return sent

    def written(self, piece: bytes | memoryview) -> bytes | memoryview:
        """Take a piece that may have the field. Returns what can be sent now."""
        end = self.passed + len(self.held) + len(piece)
        if self.at is not None and self.at >= end and not self.held:
            self.passed = end
            return piece
        data = bytearray(self.held) + piece
        at = self.place(data)
        if self.is_written:
            self.held = b""
            return bytes(data)
        if at is None or at + INT32.size > len(data):
            self.held = bytes(data)
            return b""
        raise_throttle(data, at, self.own_ms)
        self.is_written, self.held = True, b""
        return bytes(data)

    def place(self, data: bytearray) -> int | None:
        """The place of the field in the data; None if more data is needed to know it."""
        if self.at is None:
            try:
                self.at = skip_tags(memoryview(data), HEADER_END) + self.offset
            except IndexError:
                self.is_written = len(data) > MOST_HEADER_BYTES  # given up
                return None
            except WireError:
                self.is_written = True
                return None
        return self.at - self.passed


class ProduceThrottleWriter:
    """Writes the throttle time of one Produce response, which is found by a walk and held until its end."""

    __slots__ = ("inner", "own_ms")

    def __init__(self, inner: WalkedRewriter, throttle_ms: int) -> None:
        self.inner = inner
        self.own_ms = throttle_ms

    @property
    def error_code(self) -> int | None:
        """See `Rewriter`."""
        return self.inner.error_code

    @property
    def throttle_ms(self) -> int | None:
        """The broker's throttle time; see `Rewriter`."""
        return self.inner.throttle_ms

    @property
    def held_bytes(self) -> int:
        return self.inner.held_bytes

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now; see `Rewriter`."""
        out = self.inner.feed(chunk)
        if not out or self.inner.tail_at is None:
            return out
        frame = bytearray(b"".join(out))
        raise_throttle(frame, LENGTH_BYTES + self.inner.tail_at - INT32.size, self.own_ms)
        return [bytes(frame)]
