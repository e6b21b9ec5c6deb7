"""The errors of partitions and the throttle time in Produce responses."""

from __future__ import annotations

from functools import cache
from typing import Final

from odradek.wire.errors import WireError
from odradek.wire.header import flexible_response_header
from odradek.wire.layout import layout
from odradek.wire.messages.produce import ProduceResponse
from odradek.wire.walk_source import Walk, Wanted, compile_walk

CORRELATION_ID_BYTES: Final = 4
RESPONSE: Final = ProduceResponse
"""The declaration of the responses."""


@cache
def answer_walk(version: int) -> Walk:
    """A walk that reads both.

    Raises:
        WireError: There is no such version.
    """
    wanted = Wanted("error_code", ("throttle_time_ms",), header=flexible_response_header(RESPONSE, version))
    return compile_walk(layout(RESPONSE, version), wanted, f"errors v{version}")


def produce_answer(version: int, head: bytes, at: int, size: int) -> tuple[int, dict[int, int]]:
    """The throttle time, and how often each error occurs, in a response whose correlation id is at ``at``.

    Nothing if the response is malformed, not all there, or of a version that is not known.
    """
    try:
        _, errors, _, throttle_ms = answer_walk(version)(head, at + CORRELATION_ID_BYTES, at + size)
    except WireError:
        return 0, {}
    return throttle_ms, errors or {}
