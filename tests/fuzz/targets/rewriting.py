"""Responses on their way through the gateway: two bytes choose the response, the third how it is cut."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

from odradek.gateway.rewriting.api_versions import ApiPolicy, rewrite_api_versions
from odradek.gateway.rewriting.catalog import rewriter_for
from odradek.gateway.rewriting.rewriter import HoldLimits, MalformedResponse
from odradek.gateway.rewriting.streamed import StreamedRewriter
from odradek.wire.codec import reader
from odradek.wire.errors import WireError
from odradek.wire.header import flexible_response_header, read_response_header
from odradek.wire.messages.api_versions import ApiVersionsResponse
from odradek.wire.walk_source import ATOM_BYTES
from random_messages import MessageMaker
from support.rewriting import (
    CORRELATION_ID,
    REWRITTEN,
    STREAMED,
    USUAL,
    Advertised,
    expected,
    frame_of,
    pieces,
)

CASES: list[tuple[type[Any], int]] = [
    *REWRITTEN,
    *((ApiVersionsResponse, version) for version in range(6)),
]
CHOICE_BYTES = 3
NARROW = HoldLimits(response_bytes=1000, exact_fetch_bytes=100)


def seeds() -> Iterator[bytes]:
    """Two responses of each kind, one of them streamed."""
    for number, (cls, version) in enumerate(CASES):
        for streamed in (0, 1):
            message = MessageMaker(random.Random(number + 100 * streamed)).message(cls, version)
            yield number.to_bytes(2) + bytes([12 * streamed]) + frame_of(message, version)


def outcome(case: tuple[type[Any], int], frame: bytes, every: int, limits: HoldLimits) -> bytes | str:
    """The bytes that a client gets if the frame comes in pieces, or the error."""
    cls, version = case
    rewriter = rewriter_for(cls.API_KEY, version, len(frame), Advertised("g", 5), limits)
    assert rewriter is not None
    out = bytearray()
    try:
        for number, piece in enumerate(pieces(frame, range(every, len(frame), every)), start=1):
            out += b"".join(rewriter.feed(piece))
            held = min(number * every, len(frame)) - max(len(out) - 4, 0)
            if isinstance(rewriter, StreamedRewriter) and rewriter.tail_at is None:
                assert held < ATOM_BYTES, "a walk holds few bytes"
            assert held <= limits.response_bytes + every or len(out) > 4
    except MalformedResponse:
        return "malformed"
    assert int.from_bytes(out[:4]) == len(out) - 4
    return bytes(out[4:])


def decoded(case: tuple[type[Any], int], frame: bytes) -> Any:
    """The message, None if the codec refuses it or something follows it."""
    cls, version = case
    try:
        _, at = read_response_header(frame, 0, flexible_response_header(cls, version))
        message, end = reader(cls, version)(frame, at)
    except WireError:
        return None
    return message if end == len(frame) else None


def check(data: bytes) -> None:
    """Rewrite the response in one piece and in several: the outcome is the same, and what the codec says."""
    if len(data) <= CHOICE_BYTES + 4:
        return
    case = CASES[int.from_bytes(data[:2]) % len(CASES)]
    frame = CORRELATION_ID.to_bytes(4) + data[CHOICE_BYTES + 4 :]
    if case[0] is ApiVersionsResponse:
        with contextlib.suppress(MalformedResponse):
            rewrite_api_versions(frame, case[1], ApiPolicy())
        return
    limits = (USUAL, STREAMED, NARROW)[data[2] // 12 % 3]
    every = 1 + 5 * (data[2] % 12)
    whole = outcome(case, frame, max(len(frame), 1), limits)
    assert outcome(case, frame, every, limits) == whole
    if limits is NARROW or (message := decoded(case, frame)) is None:
        return
    if isinstance(whole, bytes):
        compare(case, message, decoded(case, whole))


def compare(case: tuple[type[Any], int], message: Any, result: Any) -> None:
    """Check that a client reads the same message with other addresses, or without the hint."""
    wanted = expected(message, case[1], Advertised("g", 5))
    if result is not None and hasattr(result, "node_endpoints") and not result.node_endpoints:
        wanted.node_endpoints = []
    assert result == wanted
