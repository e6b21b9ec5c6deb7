"""A response that is shown to an observer by itself, because it comes in pieces or is treated by itself."""

from __future__ import annotations

from typing import Final

from odradek.gateway.observation.observer import HEAD_BYTES, LONG_HEADS, PairObserver
from odradek.gateway.pair_state import Burst
from odradek.gateway.rewriting.addressed_layout import SeenFields
from odradek.gateway.rewriting.rewriter import Seen

LENGTH_BYTES: Final = 4
UNREAD: Final = SeenFields()
"""The fields of a response that no rewriter has read."""


class ObservedResponse:
    """One response that is shown to an observer when it is complete.

    Args:
        burst: The requests that its own one arrived with.
        size: Its length.
        data: Bytes that contain its first ones.
        at: Position in ``data`` of its correlation id. More than this response may follow.
    """

    __slots__ = ("burst", "head", "missing", "size")

    def __init__(self, burst: Burst, size: int, data: bytes, at: int = 0) -> None:
        self.burst = burst
        self.size = size
        wanted = min(size, LONG_HEADS.get(burst[0], HEAD_BYTES))
        self.head = data[at : at + wanted]
        self.missing = wanted - len(self.head)
        """Bytes that the observer wants and that have not come."""

    def add(self, data: bytes, size: int) -> None:
        """Keep the beginning of so many next bytes, as far as the observer wants them."""
        if self.missing:
            more = data[: min(size, self.missing)]
            self.head += more
            self.missing -= len(more)

    def show(self, observer: PairObserver | None, now_ns: int, seen: Seen = UNREAD) -> None:
        """Show the response, which is complete now, and the fields that its rewriter has read."""
        if observer is None:
            return
        key, version, sent_ns, _ = self.burst
        observer.responses(key, 1, LENGTH_BYTES + self.size, now_ns - sent_ns)
        observer.outcome(key, version, self.size, self.head, 0, seen.error_code, seen.throttle_ms)
