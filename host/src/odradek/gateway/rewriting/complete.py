"""Responses that have arrived whole and name no address: they pass as they are, in one piece with others.

A rewriter would hand out pieces. For a small response that costs more than everything else that a gateway
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odradek.gateway.rewriting.fields import BROKEN
from odradek.gateway.rewriting.rewriter import Seen
from odradek.gateway.rewriting.usual import usual_fetch, usual_produce
from odradek.gateway.rewriting.walks import Walker, fetch_walk, produce_walk

MOST_BYTES: Final = 65_536
"""Longer responses are not copied for the walk."""
NO_ENDPOINTS: Final = b"\0"
TOPIC_IDS: Final = 13
BY_NAME, BY_ID = produce_walk(topic_id=False), produce_walk(topic_id=True)


@dataclass(slots=True, eq=False)
class SeenFields:
    """The `Seen` of a response without a rewriter."""

    error_code: int | None = None
    throttle_ms: int | None = None


USUAL: Final = SeenFields(0, 0)


def unseen(_version: int, _data: bytes, _at: int, _end: int) -> Seen | None:
    """None: each response of this API needs its rewriter."""
    return None


def seen_produce(version: int, data: bytes, at: int, end: int) -> Seen | None:
    """The fields of a complete response to Produce v10 to v13; None if it needs its rewriter."""
    if usual_produce(version, data, at, end):
        return USUAL
    return walked(BY_ID if version >= TOPIC_IDS else BY_NAME, data, at, end)


def seen_fetch(version: int, data: bytes, at: int, end: int) -> Seen | None:
    """The same for Fetch v16 to v18."""
    return USUAL if usual_fetch(version, data, at, end) else walked(fetch_walk, data, at, end)


def walked(walker: Walker, data: bytes, at: int, end: int) -> Seen | None:
    """The fields of the response between two positions; None if it names endpoints, is long or malformed."""
    if end - at > MOST_BYTES:
        return None
    frame, seen = data[at:end], SeenFields()
    walk = walker(seen)
    next(walk)
    try:
        walk.send((frame, len(frame)))
    except StopIteration as done:
        return seen if frame[done.value :] == NO_ENDPOINTS else None
    except BROKEN:
        return None
    return None
