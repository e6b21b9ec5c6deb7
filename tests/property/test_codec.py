"""Properties of every message and arbitrary bytes."""

from __future__ import annotations

import dataclasses
import random
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.wire.codec import decode, encode, reader, stepped_reader, takes_steps
from odradek.wire.errors import Truncated, WireError
from odradek.wire.layout import ArrayOf, Kind, StructOf, layout
from odradek.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from odradek.wire.messages.streams_group_describe import StreamsMember
from odradek.wire.types import Blob, Scalar
from random_messages import MessageMaker, declared_versions
from support.examples import examples

CASES = declared_versions()
ELEMENT_BYTES = 1000
"""The largest size of an array element, as the codec's docstring states it."""
KAFKAS_LONGEST_ARRAY = 1_000_000
"""MessageUtil.MAX_ARRAY_LENGTH of Kafka 4.4. The totals of the codec are stricter."""

cases = st.sampled_from(CASES)
seeds = st.integers(0, 2**32)


def made(case: tuple[type[Any], int], seed: int) -> Any:
    return MessageMaker(random.Random(seed)).message(*case)


@given(case=cases, seed=seeds)
def test_an_encoded_message_decodes_to_the_same(case: tuple[type[Any], int], seed: int) -> None:
    cls, version = case
    message = made(case, seed)

    data = encode(message, version)

    assert reader(cls, version)(data, 0) == (message, len(data))
    assert encode(decode(cls, version, memoryview(data)), version) == data


@settings(max_examples=examples(200))
@given(case=cases, seed=seeds, where=st.floats(0, 1, exclude_max=True))
def test_a_truncated_message_is_truncated_and_nothing_else(
    case: tuple[type[Any], int], seed: int, where: float
) -> None:
    cls, version = case
    data = encode(made(case, seed), version)
    cut = data[: int(len(data) * where)]

    if not data:
        return
    with pytest.raises(Truncated):
        decode(cls, version, cut)


def read_in_steps(case: tuple[type[Any], int], data: bytes) -> tuple[Any, int]:
    """The result of a stepped reader."""
    if not takes_steps(*case):
        return reader(*case)(data, 0)
    work = stepped_reader(*case)(data, 0, list)
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: tuple[Any, int] = end.value
            return found


@settings(max_examples=examples(300))
@given(case=cases, seed=seeds, mutate=st.booleans())
def test_a_message_read_in_steps_is_the_same_or_the_same_error(
    case: tuple[type[Any], int], seed: int, mutate: bool
) -> None:
    data = encode(made(case, seed), case[1])
    if mutate:
        data = mutated(data, random.Random(seed))

    try:
        message, end = reader(*case)(data, 0)
    except WireError as error:
        with pytest.raises(type(error)):
            read_in_steps(case, data)
        return

    in_steps, end_in_steps = read_in_steps(case, data)
    # as bytes, because a NaN is not equal to itself
    assert (encode(in_steps, case[1]), end_in_steps) == (encode(message, case[1]), end)


@settings(max_examples=examples(400))
@given(case=cases, seed=seeds)
def test_a_mutated_message_is_a_wire_error_or_another_message(case: tuple[type[Any], int], seed: int) -> None:
    cls, version = case
    source = random.Random(seed)
    data = mutated(encode(made(case, seed), version), source)

    try:
        message = decode(cls, version, data)
    except WireError:
        return

    again = encode(message, version)
    assert encode(decode(cls, version, again), version) == again


def mutated(data: bytes, source: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 8))):
        at = source.randrange(len(out) + 1)
        what = source.randrange(3)
        if what == 0:
            out[at : at + 1] = bytes([source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))])
        elif what == 1:
            out[at:at] = source.randbytes(source.randrange(6))
        else:
            del out[at : at + source.randrange(6)]
    return bytes(out)


@given(case=cases, data=st.binary(max_size=200))
def test_any_bytes_are_a_wire_error_or_a_message(case: tuple[type[Any], int], data: bytes) -> None:
    cls, version = case

    try:
        message = decode(cls, version, data)
    except WireError:
        return

    assert isinstance(message, cls)


def elements(kind: Kind) -> Iterator[StructOf]:
    """Every structure that is an element of an array."""
    if isinstance(kind, ArrayOf):
        if isinstance(kind.element, StructOf):
            yield kind.element
        yield from elements(kind.element)
    if isinstance(kind, StructOf):
        for field in kind:
            yield from elements(field.kind)


def largest(kind: Kind) -> Any:
    """The value of a type that takes the most memory in excess of its bytes."""
    if isinstance(kind, StructOf):
        return kind.cls(**{field.name: largest(field.kind) for field in kind})
    if isinstance(kind, ArrayOf):
        return []
    if isinstance(kind, Scalar):
        return {"b": -100, "h": 30_000, "H": 60_000, "i": 2**31 - 1, "q": 2**63 - 1, "d": 0.5, "?": True}[
            kind.format
        ]
    return {Blob.STRING: "名", Blob.BYTES: b"ab", Blob.UUID: bytes(16), Blob.RECORDS: memoryview(b"ab")[:1]}[
        kind
    ]


def occupied_bytes(value: Any) -> int:
    inner = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    return sys.getsizeof(value) + sum(occupied_bytes(getattr(value, field.name)) for field in inner)


def test_no_element_is_larger_than_stated() -> None:
    shapes = [shape for cls, version in CASES for shape in elements(layout(cls, version))]

    sizes = {shape.cls: occupied_bytes(largest(shape)) for shape in shapes}

    member = sizes.pop(StreamsMember)  # it has three assignments; the tools of an operator read it
    assert max(sizes.values()) < ELEMENT_BYTES
    assert member < 1.5 * ELEMENT_BYTES


def peak_bytes(cls: type[Any], version: int, data: bytes) -> int:
    """The most memory that decoding takes, in addition to the data."""
    read = reader(cls, version)
    tracemalloc.start()
    try:
        read(data, 0)
    except WireError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


def test_the_largest_elements_stay_within_the_bound() -> None:
    count = 10_000
    partition = PartitionData(
        partition_index=70_000,
        high_watermark=2**62,
        last_stable_offset=2**61,
        log_start_offset=2**60,
        diverging_epoch=EpochEndOffset(epoch=99_999, end_offset=2**59),
        current_leader=LeaderIdAndEpoch(leader_id=99_999, leader_epoch=99_999),
        snapshot_id=SnapshotId(end_offset=2**58, epoch=99_999),
        preferred_read_replica=70_000,
    )
    data = encode(FetchResponse(responses=[FetchableTopicResponse(partitions=[partition] * count)]), 18)

    peak = peak_bytes(FetchResponse, 18, data)

    assert peak < 4 * len(data) + count * ELEMENT_BYTES


@pytest.mark.parametrize("rare", ["é", "名", "🪡"])
def test_wide_strings_stay_within_the_bound(rare: str) -> None:
    data = encode(DeleteGroupsRequest(groups_names=["x" * 500_000 + rare]), 2)

    peak = peak_bytes(DeleteGroupsRequest, 2, data)

    assert peak < 6 * len(data) + 10 * ELEMENT_BYTES


@pytest.mark.parametrize("cls", [DeleteGroupsRequest, DeleteGroupsResponse])
def test_an_array_beyond_kafkas_bound_is_refused_before_anything_is_allocated(cls: type[Any]) -> None:
    throttle_time_ms = b"" if cls is DeleteGroupsRequest else bytes(4)
    data = throttle_time_ms + (KAFKAS_LONGEST_ARRAY + 1).to_bytes(4) + bytes(4 * KAFKAS_LONGEST_ARRAY + 4)

    peak = peak_bytes(cls, 0, data)

    assert peak < 10 * ELEMENT_BYTES
    with pytest.raises(WireError, match=f"{KAFKAS_LONGEST_ARRAY + 1} more elements"):
        decode(cls, 0, data)


@settings(max_examples=examples(100))
@given(case=cases, seed=seeds)
def test_wrong_lengths_take_no_memory(case: tuple[type[Any], int], seed: int) -> None:
    source = random.Random(seed)
    data = bytearray(encode(made(case, seed), case[1]))
    for _ in range(3):
        at = source.randrange(len(data) + 1)
        data[at : at + 4] = source.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\x07", b"\x00\x0f\xff\xff"))

    peak = peak_bytes(*case, bytes(data))

    # The densest array has two bytes and about a hundred bytes of memory for each element.
    assert peak < 64 * len(data) + 100 * ELEMENT_BYTES
