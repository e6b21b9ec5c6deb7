"""A compiled walk finds what the codec decodes, in every version of every message, wherever it is cut."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.wire.codec import encode, reader
from odradek.wire.errors import Truncated, WireError
from odradek.wire.layout import ArrayOf, Kind, StructOf, layout
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.types import Scalar
from odradek.wire.walk_source import (
    ATOM_BYTES,
    StreamedWalk,
    Walk,
    Wanted,
    compile_streamed_walk,
    compile_walk,
)
from odradek.wire.walking import Walking
from random_messages import MessageMaker, declared_versions
from support.batches import batch_of
from support.examples import examples

Case = tuple[type[Any], int]
CASES = declared_versions()
MOST_BYTES = 150
BEFORE, AFTER = b"\x7f" * 5, b"\x02" * 90
"""Bytes of other messages around one."""

cases = st.sampled_from(CASES)
seeds = st.integers(0, 2**32)


def wanted(case: Case) -> Wanted:
    """All fields at the top, and all error codes."""
    return Wanted("error_code", tuple(field.name for field in layout(*case).fields))


@cache
def walk_of(case: Case) -> Walk:
    return compile_walk(layout(*case), wanted(case), "test")


@cache
def streamed_walk_of(case: Case) -> Callable[[int], StreamedWalk]:
    return compile_streamed_walk(layout(*case), wanted(case), "test")


def streamed(case: Case, data: bytes, every: int) -> tuple[Any, ...] | None:
    """The result of a streamed walk over a message in equal pieces, which must come out as they are."""
    walking = Walking(streamed_walk_of(case)(0), len(data))
    out = b""
    for start in range(0, max(len(data), 1), every):
        out += b"".join(walking.feed(memoryview(data)[start : start + every]))
        assert walking.found is not None or len(walking.held) < ATOM_BYTES
    assert out + walking.held == data
    return walking.found


def error_codes(kind: Kind, value: Any) -> Iterator[int]:
    """The error codes in a value, in the order of their bytes."""
    if isinstance(kind, ArrayOf) and value is not None:
        for element in value:
            yield from error_codes(kind.element, element)
    elif isinstance(kind, StructOf) and value is not None:
        for field in kind.fields:
            if field.name == "error_code":
                yield getattr(value, field.name)
            yield from error_codes(field.kind, getattr(value, field.name))


def check_found(case: Case, message: Any, found: tuple[Any, ...]) -> None:
    """Compare the numbers and the errors with those of a decoded message."""
    shape = layout(*case)
    codes = [code for code in error_codes(shape, message) if code]
    assert found[1] == (dict(Counter(codes)) if codes else None)
    assert list(found[1] or ()) == list(dict.fromkeys(codes))
    for number, field in enumerate(shape.fields):
        if isinstance(field.kind, Scalar):
            assert found[3 + 2 * number] == getattr(message, field.name)


@settings(max_examples=examples(1000), deadline=None)
@given(case=cases, seed=seeds, every=st.sampled_from((1, 3, 7, 64, 1000)))
def test_a_walk_finds_what_was_encoded(case: Case, seed: int, every: int) -> None:
    message = MessageMaker(random.Random(seed)).message(*case)
    data = encode(message, case[1])
    start, end = len(BEFORE), len(BEFORE) + len(data)

    found = walk_of(case)(BEFORE + data + AFTER, start, end)

    assert found[0] == end
    check_found(case, message, found)
    places = [None if place is None else place - start for place in found[2::2]]
    assert sorted(place for place in places if place is not None) == places
    pieces = streamed(case, data, every)
    assert pieces is not None
    assert pieces[0] == len(data)
    assert pieces[1] == found[1]
    assert pieces[2::2] == tuple(places)


def test_a_streamed_walk_may_be_cut_anywhere() -> None:
    maker = MessageMaker(random.Random(7))
    for case in CASES:
        data = encode(maker.message(*case), case[1])[:MOST_BYTES]
        whole: Any = None
        for cut in range(len(data)):
            walking = Walking(streamed_walk_of(case)(0), len(data))
            try:
                out = [*walking.feed(memoryview(data)[:cut]), *walking.feed(memoryview(data)[cut:])]
            except Truncated:
                break  # the message is longer than the bytes
            assert b"".join(out) + walking.held == data
            whole = whole or walking.found
            assert walking.found == whole


@settings(max_examples=examples(500), deadline=None)
@given(case=cases, seed=seeds, where=st.floats(0, 1, exclude_max=True))
def test_a_message_that_ends_early_is_truncated(case: Case, seed: int, where: float) -> None:
    data = encode(MessageMaker(random.Random(seed)).message(*case), case[1])
    cut = int(len(data) * where)
    if not data:
        return

    for end in (BEFORE + data[:cut], BEFORE + data[:cut] + AFTER):
        try:
            found = walk_of(case)(end, len(BEFORE), len(BEFORE) + cut)
        except WireError:
            continue
        assert not found, "a shorter message is complete"


@settings(max_examples=examples(1000), deadline=None)
@given(case=cases, seed=seeds, data=st.data())
def test_hostile_bytes_mean_what_the_codec_says(case: Case, seed: int, data: st.DataObject) -> None:
    frame = bytearray(encode(MessageMaker(random.Random(seed)).message(*case), case[1]))
    for _ in range(data.draw(st.integers(0, 3)) if frame else 0):
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at] = data.draw(st.sampled_from((0, 1, 2, 127, 128, 255)))
    hostile = bytes(frame)
    try:
        message, end = reader(*case)(hostile, 0)
    except WireError:
        message, end = None, -1

    try:
        found = walk_of(case)(hostile, 0, len(hostile))
    except WireError:
        assert message is None
        found = None
    every = data.draw(st.sampled_from((1, 7, 1000)))
    try:
        pieces = streamed(case, hostile, every)
    except WireError:
        pieces = None

    assert pieces is None or found is None or pieces[:2] == found[:2]
    assert (pieces is None) == (found is None)
    if message is not None and found is not None:
        assert found[0] == end
        check_found(case, message, found)


@settings(max_examples=examples(300), deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(1, 3), max_size=3), max_size=4),
    version=st.integers(3, 13),
    every=st.sampled_from((1, 13, 61, 5000)),
)
def test_batches_are_counted_by_their_headers(sizes: list[list[int]], version: int, every: int) -> None:
    partitions = [
        PartitionProduceData(records=b"".join(batch_of(*[b"v" * 90] * count) for count in counts))
        for counts in sizes
    ]
    data = encode(ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=partitions)]), version)
    shape, counting = layout(ProduceRequest, version), Wanted(batches="records")
    total = (
        sum(map(sum, sizes)),
        sum(map(len, sizes)),
        sum(len(each.records or b"") for each in partitions),
    )

    walking = Walking(compile_streamed_walk(shape, counting, "test")(0), len(data))
    for start in range(0, len(data), every):
        walking.feed(memoryview(data)[start : start + every])

    assert compile_walk(shape, counting, "test")(data, 0, len(data)) == (len(data), None, *total)
    assert walking.found == (len(data), None, *total)
