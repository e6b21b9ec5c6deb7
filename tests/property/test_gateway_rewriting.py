"""Rewritten responses equal what the codec makes of them, wherever they are cut."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.gateway.rewriting.catalog import rewriter_for
from odradek.gateway.rewriting.rewriter import HoldLimits, MalformedResponse
from odradek.wire.messages.fetch import FetchResponse
from odradek.wire.messages.share_fetch import ShareFetchResponse
from odradek.wire.walk_source import ATOM_BYTES
from random_messages import MessageMaker
from support.examples import examples
from support.rewriting import (
    REWRITTEN,
    STREAMED,
    Advertised,
    expected,
    fed,
    frame_of,
    message_of,
    pieces,
)

UPSTREAM = "upstream.internal"
STREAMING = [case for case in REWRITTEN if case[0] in (FetchResponse, ShareFetchResponse)]

seeds = st.integers(0, 2**32)
cut_positions = st.lists(st.floats(0, 1), max_size=12)
hosts = st.sampled_from(("g", "gateway.example.com", "gateway-" * 20, "x" * 300))


def made(cls: type[Any], version: int, seed: int) -> Any:
    """A random response with recognizable hosts."""
    source = random.Random(seed)
    message = MessageMaker(source).message(cls, version)
    named = [message] if hasattr(message, "host") and version < 4 else []
    for name in ("brokers", "node_endpoints", "coordinators"):
        named += getattr(message, name, [])
    for number, node in enumerate(named):
        node.host = source.choice((f"b{number}.{UPSTREAM}", f"{'long-' * number * 9}{UPSTREAM}"))
    return message


def chunks_of(frame: bytes, cuts: list[float], every: int) -> list[memoryview]:
    """The frame in random pieces, or in equal ones of ``every`` bytes."""
    if every:
        return pieces(frame, range(every, len(frame), every))
    return pieces(frame, (int(cut * len(frame)) for cut in cuts))


@settings(max_examples=examples(600))
@given(
    case=st.sampled_from(REWRITTEN),
    seed=seeds,
    cuts=cut_positions,
    every=st.sampled_from((0, 0, 1, 7, 64)),
    host=hosts,
    unmapped_from=st.sampled_from((2**31, 1, -(2**31))),
)
def test_a_rewritten_response_is_the_same_with_advertised_addresses(
    case: tuple[type[Any], int], seed: int, cuts: list[float], every: int, host: str, unmapped_from: int
) -> None:
    cls, version = case
    message = made(cls, version, seed)
    addresses = Advertised(host, unmapped_from)
    frame = frame_of(message, version, random.Random(seed).choice((b"\0", b"\x01\x05\x03abc")))
    rewriter = rewriter_for(cls.API_KEY, version, len(frame), addresses, HoldLimits())
    assert rewriter is not None

    out = fed(rewriter, chunks_of(frame, cuts, every))

    assert message_of(cls, version, out) == expected(message, version, addresses)
    assert UPSTREAM.encode() not in out


@settings(max_examples=examples(400))
@given(
    case=st.sampled_from(STREAMING),
    seed=seeds,
    cuts=cut_positions,
    every=st.sampled_from((0, 0, 1, 7, 64)),
    host=hosts,
    unmapped_from=st.sampled_from((2**31, 1)),
)
def test_a_streamed_response_keeps_its_size_and_names_no_other_address(
    case: tuple[type[Any], int], seed: int, cuts: list[float], every: int, host: str, unmapped_from: int
) -> None:
    cls, version = case
    message = made(cls, version, seed)
    addresses = Advertised(host, unmapped_from)
    frame = frame_of(message, version)
    rewriter = rewriter_for(cls.API_KEY, version, len(frame), addresses, STREAMED)
    assert rewriter is not None

    out = fed(rewriter, chunks_of(frame, cuts, every))

    assert len(out) == len(frame)
    assert UPSTREAM.encode() not in out
    result, wanted = message_of(cls, version, out), expected(message, version, addresses)
    if not result.node_endpoints:
        wanted.node_endpoints = []
    assert result == wanted


@settings(max_examples=examples(200))
@given(case=st.sampled_from(STREAMING), seed=seeds, every=st.integers(1, 200))
def test_a_walk_holds_few_bytes(case: tuple[type[Any], int], seed: int, every: int) -> None:
    cls, version = case
    frame = frame_of(made(cls, version, seed), version)
    rewriter = rewriter_for(cls.API_KEY, version, len(frame), Advertised(), STREAMED)
    assert rewriter is not None

    taken = given_back = 0
    for chunk in pieces(frame, range(every, len(frame), every)):
        given_back += sum(map(len, rewriter.feed(chunk)))
        taken += len(chunk)
        if getattr(rewriter, "tail_at") is None:  # noqa: B009  of one of the classes
            assert taken + 4 - given_back < ATOM_BYTES


@settings(max_examples=examples(400))
@given(case=st.sampled_from(REWRITTEN), seed=seeds, where=st.floats(0, 1, exclude_max=True))
def test_a_response_that_ends_early_is_malformed_or_passes_what_follows_the_addresses(
    case: tuple[type[Any], int], seed: int, where: float
) -> None:
    cls, version = case
    frame = frame_of(made(cls, version, seed), version)
    cut = frame[: int(len(frame) * where)]
    rewriter = rewriter_for(cls.API_KEY, version, len(cut), Advertised(), HoldLimits())
    assert rewriter is not None

    try:
        out = b"".join(rewriter.feed(memoryview(cut)))
    except MalformedResponse:
        return

    assert cls.__name__ == "MetadataResponse", "only its topics are not read"
    assert UPSTREAM.encode() not in out


@pytest.mark.parametrize(("cls", "version"), REWRITTEN)
def test_every_version_passes_every_cut(cls: type[Any], version: int) -> None:
    message = made(cls, version, 5)
    frame = frame_of(message, version)
    addresses = Advertised()
    once = expected(message, version, addresses)

    for cut in range(1, min(len(frame), 400)):
        rewriter = rewriter_for(cls.API_KEY, version, len(frame), addresses, HoldLimits())
        assert rewriter is not None
        assert message_of(cls, version, fed(rewriter, pieces(frame, [cut]))) == once
