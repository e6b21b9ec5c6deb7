"""The timestamp of a record, found by the offsets at times."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from odradek.lag.time_search import NEAR_MS, TimeSearch

DAY_MS = 86_400_000


def searched(stamps_ms: list[int], offset: int, now_ms: int) -> tuple[int | None, int]:
    """What the search finds in a log with these timestamps, and how often it asks."""
    search, questions = TimeSearch(offset, now_ms), 0
    while (asked_ms := search.asks_ms) is not None:
        first = bisect_left(stamps_ms, asked_ms)
        questions += 1
        search.answered(*((first, stamps_ms[first]) if first < len(stamps_ms) else (-1, -1)))
    return search.found_ms, questions


@given(st.lists(st.integers(0, 12 * DAY_MS), min_size=1), st.data())
def test_the_timestamp_is_found_within_a_second(stamps_ms: list[int], data: st.DataObject) -> None:
    stamps_ms = sorted(1_700_000_000_000 + each for each in stamps_ms)
    offset = data.draw(st.integers(0, len(stamps_ms) - 1))

    found_ms, questions = searched(stamps_ms, offset, stamps_ms[0] + 12 * DAY_MS)

    assert found_ms is not None
    assert stamps_ms[offset] - NEAR_MS <= found_ms <= stamps_ms[offset]
    assert questions <= 22


def test_the_first_record_takes_one_question() -> None:
    assert searched([1_000, 2_000], 0, 90_000) == (1_000, 1)


def test_a_record_that_compaction_took_stands_for_the_next_one() -> None:
    search = TimeSearch(3, 90_000)

    search.answered(7, 5_000)

    assert (search.found_ms, search.asks_ms) == (5_000, None)


def test_without_timestamps_nothing_is_found() -> None:
    assert searched([], 0, 90_000) == (None, 1)


def test_a_timestamp_in_the_future_is_found_too() -> None:
    found_ms, _ = searched([1_000, DAY_MS], 1, 90_000)

    assert found_ms == DAY_MS
