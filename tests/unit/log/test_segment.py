"""Reads of a segment's file to answer a consumer."""

from __future__ import annotations

import os

import pytest

from odradek.log.partition_log import PartitionLog
from odradek.wire.record_batch import record_batches
from support.batches import NOW_MS, batch_of

BATCHES = 60
BATCH_BYTES = len(batch_of(b"x" * 10_000))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of each read from a file."""
    lengths: list[int] = []
    pread = os.pread

    def recorded(descriptor: int, length: int, position: int) -> bytes:
        lengths.append(length)
        return pread(descriptor, length, position)

    monkeypatch.setattr(os, "pread", recorded)
    return lengths


@pytest.fixture
def filled(log: PartitionLog) -> PartitionLog:
    for number in range(BATCHES):
        log.append(batch_of(b"%d" % (number % 10) * 10_000), NOW_MS)
    return log


@pytest.mark.parametrize("limit", [BATCH_BYTES, BATCH_BYTES + 1, 3 * BATCH_BYTES - 1, 25 * BATCH_BYTES])
def test_a_sequential_consumer_reads_every_batch_once(filled: PartitionLog, limit: int) -> None:
    offset, sizes, offsets = 0, [], []

    while offset < filled.log_end_offset:
        data = filled.read(offset, limit)
        sizes.append(len(data))
        offsets += [header.base_offset for header, _ in record_batches(data)]
        offset = offsets[-1] + 1

    assert offsets == list(range(BATCHES))
    assert set(sizes[:-1]) == {limit // BATCH_BYTES * BATCH_BYTES}


def test_a_sequential_consumer_costs_one_header_and_one_read(filled: PartitionLog, reads: list[int]) -> None:
    filled.read(0, 5 * BATCH_BYTES)
    reads.clear()

    data = filled.read(5, 5 * BATCH_BYTES)

    assert len(data) == 5 * BATCH_BYTES
    assert len(reads) == 2


def test_two_consumers_at_different_places_get_their_own_batches(filled: PartitionLog) -> None:
    first, second = 0, 30

    for _ in range(5):
        ahead = next(record_batches(filled.read(first, 2 * BATCH_BYTES)))[0]
        behind = next(record_batches(filled.read(second, 3 * BATCH_BYTES)))[0]
        assert (ahead.base_offset, behind.base_offset) == (first, second)
        first, second = first + 2, second + 3


def test_a_truncated_segment_forgets_positions_after_the_cut(filled: PartitionLog) -> None:
    filled.read(0, 5 * BATCH_BYTES)
    segment = filled.segments[0]

    segment.truncate(5 * BATCH_BYTES)

    assert segment.locate(5) is None
    assert segment.find(5, BATCH_BYTES, True) is None
