"""Offsets and ranges: for any arrival of records, every record is in one batch and one task."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek_spark.source.offsets import (
    ForeignOffsets,
    OffsetRange,
    as_json,
    backlog,
    from_json,
    grouped,
    limited,
    ranges,
    tasks,
)

SIZES = st.dictionaries(st.integers(0, 3), st.floats(0.0, 5_000.0))
APPENDS = st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 500)), max_size=20)


def test_offsets_survive_json() -> None:
    offsets = {2: 7, 10: 2**40, 0: 0}

    written = as_json(offsets)

    assert list(written) == ["0", "2", "10"]
    assert from_json(written) == offsets


@pytest.mark.parametrize("foreign", [{"telemetry": {"0": 10}}, {"0": "ten"}, {"0": None}, [1], 7, "3"])
def test_offsets_of_another_source_are_refused(foreign: Any) -> None:
    with pytest.raises(ForeignOffsets, match=r"checkpoint holds .* belongs to another source"):
        from_json(foreign)


@given(APPENDS, SIZES, st.integers(1, 1 << 20), st.integers(1, 1 << 16))
def test_batches_and_tasks_cover_the_topic_without_overlap(
    appends: list[dict[int, int]], sizes: dict[int, float], max_bytes: int, task_bytes: int
) -> None:
    end: dict[int, int] = {}
    at: dict[int, int] = {}
    read: dict[int, list[int]] = {}

    # each batch reads at least one record, so it ends
    idle: list[dict[int, int]] = [{}] * sum(sum(append.values()) for append in appends)
    for append in [*appends, *idle]:
        for partition, count in append.items():
            end[partition] = end.get(partition, 0) + count
        for partition in end:
            at.setdefault(partition, 0)
        reached = limited(at, end, sizes, max_bytes)
        for group in grouped(tasks(ranges(at, reached), sizes, task_bytes), sizes, task_bytes // 8):
            for piece in group:
                read.setdefault(piece.partition, []).extend(range(piece.start, piece.end))
        at = reached
        if not append and at == end:
            break

    assert at == end
    assert read == {partition: list(range(count)) for partition, count in end.items() if count}


def test_small_pieces_share_a_task_and_large_ones_do_not() -> None:
    pieces = [OffsetRange(part, 0, count) for part, count in enumerate((3, 2, 5, 1, 9, 40, 1))]

    groups = grouped(pieces, dict.fromkeys(range(7), 100.0), 1_000)

    assert [[each.partition for each in group] for group in groups] == [[0, 1, 2], [3, 4], [5], [6]]


@given(st.dictionaries(st.integers(0, 5), st.integers(1, 10_000), min_size=1), st.integers(1, 1 << 16))
def test_a_limited_batch_takes_from_every_partition(backlogs: dict[int, int], max_bytes: int) -> None:
    start = dict.fromkeys(backlogs, 0)

    reached = limited(start, backlogs, dict.fromkeys(backlogs, 100.0), max_bytes)

    assert all(0 < reached[each] <= backlogs[each] for each in backlogs)
    assert sum(reached.values()) * 100 <= max_bytes + 100 * len(backlogs)


def test_a_new_partition_has_no_backlog_before_it_has_a_start() -> None:
    start, end = {0: 5}, {0: 9, 1: 100}

    waiting = backlog(start, end)

    assert waiting == 4
    assert ranges(start, end) == [OffsetRange(0, 5, 9)]


def test_a_range_that_ends_before_its_start_reads_nothing() -> None:
    start, end = {0: 9}, {0: 5}

    found = ranges(start, end)

    assert found == []
    assert backlog(start, end) == 0
