"""Puts a throttle time into a response that passes."""

from __future__ import annotations

from typing import Any

from odradek.gateway.rewriting.fields import INT32
from odradek.gateway.rewriting.rewriter import Rewriter
from odradek.gateway.throttling.throttle_place import CORRELATION_ID_BYTES, walk_to_throttle
from odradek.wire.errors import WireError
from odradek.wire.walk_source import StreamedWalk
from odradek.wire.walking import Walking


def with_throttle_time(
    response: type[Any] | None, version: int, inner: Rewriter, throttle_ms: int
) -> Rewriter:
    """Return the rewriter of a response that has to tell a throttle time.

    Args:
        response: The declared response, None if it is not known.
        version: Its version.
        inner: Rewrites the response otherwise, or leaves it as it is.
        throttle_ms: The throttle time; a larger one of the broker stays.

    Returns:
        ``inner`` if the response has no field for the throttle time, or one that is not known.
    """
    if response is None or version not in response.VERSIONS:
        return inner
    walk = walk_to_throttle(response, version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable
    return inner if walk is None else ThrottleWriter(inner, throttle_ms, walk(CORRELATION_ID_BYTES))


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


class ThrottleWriter:
    """Writes the throttle time of one response in passing.

    Args:
        inner: Rewrites the response otherwise.
        throttle_ms: The throttle time.
        walk: A walk to the field.
    """

    __slots__ = ("inner", "is_done", "own_ms", "walk", "walking")

    def __init__(self, inner: Rewriter, throttle_ms: int, walk: StreamedWalk) -> None:
        self.inner = inner
        self.own_ms = throttle_ms
        self.walk = walk
        self.walking: Walking | None = None
        """None before the length of the response has come from ``inner``."""
        self.is_done = False

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
        return self.inner.held_bytes + (len(self.walking.held) if self.walking is not None else 0)

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now; see `Rewriter`."""
        out: list[bytes | memoryview] = []
        for piece in self.inner.feed(chunk):
            out += [piece] if self.is_done else self.written(piece)
        return out

    def written(self, piece: bytes | memoryview) -> list[bytes | memoryview]:
        """Take a piece that may have the field. Returns what can be sent now."""
        walking = self.walking
        if walking is None:
            (size,) = INT32.unpack(piece)
            self.walking = Walking(self.walk, size)
            return [piece]
        try:
            out = walking.feed(memoryview(piece))
        except WireError:
            self.is_done = True  # it passes as it is: the client may make sense of it
            return [walking.held, piece]
        if walking.found is None or len(walking.held) < INT32.size:
            return [*out, walking.held] if walking.fed >= walking.size else out
        self.is_done = True
        field, rest = walking.held[: INT32.size], walking.held[INT32.size :]
        return [*out, max(field, INT32.pack(self.own_ms), key=INT32.unpack), rest]
