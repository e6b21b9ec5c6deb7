"""Requests that are still in the buffer of a connection when its client sends no more."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from odradek.gateway.pair_failure import PairFailure
from odradek.gateway.produce_beginning import read_acks
from odradek.telemetry.goodbyes import AWAITED

LENGTH_BYTES: Final = 4
SHORTEST: Final = 8
"""Length, API key and version."""
PRODUCE: Final = 0
unpack_head: Callable[..., tuple[int, int, int]] = struct.Struct(">ihh").unpack_from


def waits(buffer: bytes | bytearray) -> bool:
    """Whether the client waits for the answer to a request, or has not sent all of it."""
    at, end = 0, len(buffer)
    while at + SHORTEST <= end:
        size, key, version = unpack_head(buffer, at)
        at += LENGTH_BYTES
        if size < LENGTH_BYTES:
            return True
        is_whole = at + size <= end
        if key in AWAITED and not (
            is_whole and key == PRODUCE and not acks(bytes(buffer[at : at + size]), version)
        ):
            return True
        at += size
    return False


def acks(request: bytes, version: int) -> int:
    """The field acks of a Produce request; 0 if there is no answer to it. A malformed one has none either."""
    try:
        found = read_acks(request, 0, len(request), version)
    except PairFailure:
        return 0
    return 0 if found is None else found[0]
