"""A throttle time is the only change of a response that it is written into, wherever that is cut."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.gateway.rewriting.catalog import rewriter_for
from odradek.gateway.rewriting.rewriter import HoldLimits, Rewriter
from odradek.gateway.throttling.throttle_writer import Unchanged, with_throttle_time
from odradek.wire.messages.api_versions import ApiVersionsResponse
from odradek.wire.messages.heartbeat import HeartbeatResponse
from random_messages import MessageMaker, declared_versions
from support.examples import examples
from support.rewriting import (
    REWRITTEN,
    STREAMED,
    Advertised,
    fed,
    frame_of,
    message_of,
    pieces,
)

LIMITS = HoldLimits()


def tells(cls: type[Any], version: int) -> bool:
    """Whether a version of a response has a throttle time."""
    if "throttle_time_ms" not in cls.__dataclass_fields__ or cls is ApiVersionsResponse:
        return False
    return frame_of(cls(throttle_time_ms=0), version) != frame_of(cls(throttle_time_ms=77), version)


TELLING: list[tuple[type[Any], int]] = [
    case for case in dict.fromkeys([*declared_versions(), *REWRITTEN]) if tells(*case)
]


def throttled(
    case: tuple[type[Any], int],
    size: int,
    throttle_ms: int,
    addresses: Advertised,
    limits: HoldLimits = LIMITS,
) -> Rewriter:
    cls, version = case
    inner = rewriter_for(cls.API_KEY, version, size, addresses, limits)
    return with_throttle_time(cls, version, inner or Unchanged(size), throttle_ms)


@settings(max_examples=examples(800))
@given(
    case=st.sampled_from(TELLING),
    seed=st.integers(0, 2**32),
    theirs=st.sampled_from((0, 1, 499, 500, 501, 2**31 - 1)),
    cuts=st.lists(st.floats(0, 1), max_size=12),
    every=st.sampled_from((0, 0, 1, 3, 7)),
    limits=st.sampled_from((LIMITS, STREAMED)),
)
def test_the_larger_throttle_time_is_told(
    case: tuple[type[Any], int], seed: int, theirs: int, cuts: list[float], every: int, limits: HoldLimits
) -> None:
    cls, version = case
    message = MessageMaker(random.Random(seed)).message(cls, version)
    message.throttle_time_ms = theirs
    addresses = Advertised()
    tags = random.Random(seed).choice((b"\0", b"\x01\x05\x03abc"))
    frame = frame_of(message, version, tags)
    rewriter = throttled(case, len(frame), 500, addresses, limits)
    if every:
        chunks = pieces(frame, range(every, len(frame), every))
    else:
        chunks = pieces(frame, (int(cut * len(frame)) for cut in cuts))

    told = message_of(cls, version, fed(rewriter, chunks))

    plain = rewriter_for(cls.API_KEY, version, len(frame), Advertised(), limits)
    wanted = message if plain is None else message_of(cls, version, fed(plain, chunks))
    wanted.throttle_time_ms = max(500, theirs)
    assert told == wanted


def test_a_response_that_ends_before_its_throttle_time_passes() -> None:
    frame = (77).to_bytes(4) + b"\0\0"
    rewriter = throttled((HeartbeatResponse, 4), len(frame), 500, Advertised())

    assert fed(rewriter, pieces(frame, range(1, len(frame)))) == frame


@pytest.mark.parametrize("tags", [b"\x7f", b"\x01\x05\xff\xff\x03" + bytes(5000)])
def test_a_header_that_makes_no_sense_passes(tags: bytes) -> None:
    frame = (77).to_bytes(4) + tags + bytes(20)
    rewriter = throttled((HeartbeatResponse, 4), len(frame), 500, Advertised())

    assert fed(rewriter, pieces(frame, range(1, len(frame)))) == frame
