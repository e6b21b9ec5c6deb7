"""The place of ``throttle_time_ms`` in responses, found by walks that are compiled from their declarations.

Responses that are not declared, and versions that lack the field, are not written: their clients are not read
for a while, and are not told why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from odradek.gateway.rewriting.fields import int32_at
from odradek.wire.header import flexible_response_header
from odradek.wire.layout import layout
from odradek.wire.walk_source import StreamedWalk, Wanted, compile_streamed_walk, compile_walk

FIELD: Final = "throttle_time_ms"
CORRELATION_ID_BYTES: Final = 4


def wanted(response: type[Any], version: int) -> Wanted:
    """Everything before the field."""
    return Wanted(header=flexible_response_header(response, version), before=FIELD)


@cache
def walk_to_throttle(response: type[Any], version: int) -> Callable[[int], StreamedWalk] | None:
    """Starts a streamed walk from the end of the correlation id to the field; None without the field."""
    shape = layout(response, version)
    if FIELD not in {field.name for field in shape.fields}:
        return None
    title = f"{response.__name__} v{version} throttle time"
    return compile_streamed_walk(shape, wanted(response, version), title)


@cache
def throttle_reader(response: type[Any], version: int) -> Callable[[bytes], int]:
    """Reads the field of a response that has it, from its correlation id on."""
    title = f"{response.__name__} v{version} throttle time"
    walk = compile_walk(layout(response, version), wanted(response, version), title)

    def read(frame: bytes) -> int:
        return int(int32_at(frame, walk(frame, CORRELATION_ID_BYTES, len(frame))[0])[0])

    return read
