"""The table of ends and times: bounds that no client's clock can break."""

from __future__ import annotations

import pytest

from odradek.lag.offset_times import GAP_SHARE, KEPT_POINTS, MAX_POINTS, AppendTime, OffsetTimes


def table(*polls: tuple[int, int, int]) -> OffsetTimes:
    made = OffsetTimes()
    for end, sent_ms, received_ms in polls:
        made.note(end, sent_ms, received_ms)
    return made


TWO_POLLS = table((10, 1_000, 1_010), (20, 3_000, 3_010))


def test_an_append_is_between_the_polls_before_and_after_it() -> None:
    found = TWO_POLLS.appended(10)

    assert found is not None
    assert (found.earliest_ms, found.latest_ms) == (1_000, 3_010)
    assert 1_000 < found.time_ms < 3_010
    assert found.error_ms == max(found.time_ms - 1_000, 3_010 - found.time_ms)


def test_between_two_polls_times_are_in_the_order_of_offsets() -> None:
    times = [found.time_ms for offset in range(10, 20) if (found := TWO_POLLS.appended(offset))]

    assert len(times) == 10
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("timestamp_ms", "believed_ms"),
    [(2_000, 2_000), (600, 1_000), (3_400, 3_010), (-1, None), (499, None), (9_000_000, None)],
    ids=["within", "a little early", "a little late", "none", "hours ago", "in the future"],
)
def test_a_timestamp_is_believed_within_the_bounds_only(timestamp_ms: int, believed_ms: int | None) -> None:
    guess, found = TWO_POLLS.appended(10), TWO_POLLS.appended(10, timestamp_ms)

    assert guess is not None
    assert found is not None
    assert found.time_ms == (guess.time_ms if believed_ms is None else believed_ms)


def test_the_brokers_own_timestamp_is_the_answer() -> None:
    assert TWO_POLLS.appended(10, 1_234, stamped=True) == AppendTime(1_234, 1_234, 1_234)


def test_a_record_older_than_the_table_needs_its_timestamp() -> None:
    assert TWO_POLLS.appended(3) is None
    assert TWO_POLLS.is_older(3)
    assert not TWO_POLLS.is_older(10)
    found = TWO_POLLS.appended(3, 200)
    assert found == AppendTime(200, None, 1_010)
    assert found.error_ms is None


def test_an_old_record_is_not_younger_than_the_first_poll() -> None:
    assert TWO_POLLS.appended(3, 9_000_000) == AppendTime(1_010, None, 1_010)


def test_there_is_no_time_of_a_record_that_no_poll_has_seen() -> None:
    assert TWO_POLLS.appended(20) is None
    assert OffsetTimes().appended(0, 1_000) is None


def test_a_burst_that_ended_keeps_its_date() -> None:
    polls = table((0, 0, 0), (500, 2_000, 2_000))
    burst = polls.appended(250)
    for time_ms in range(4_000, 4_000_000, 2_000):
        polls.note(500, time_ms)

    assert polls.appended(250) == burst
    assert len(polls.ends) == 2


def test_after_a_long_silence_a_record_is_as_young_as_it_is() -> None:
    polls = table((5, 0, 0), (5, 10_000, 10_000), (5, 3_600_000, 3_600_000), (6, 3_602_000, 3_602_000))

    found = polls.appended(5)

    assert found is not None
    assert (found.earliest_ms, found.latest_ms) == (3_600_000, 3_602_000)


def test_a_truncation_drops_what_was_beyond_it() -> None:
    polls = table((10, 0, 0), (20, 2_000, 2_000), (12, 4_000, 4_000), (18, 6_000, 6_000))

    found = polls.appended(15)

    assert list(polls.ends) == [10, 12, 18]
    assert found is not None
    assert (found.earliest_ms, found.latest_ms) == (4_000, 6_000)


def test_a_clock_that_is_set_back_breaks_no_bound() -> None:
    polls = table((10, 5_000, 5_000), (20, 1_000, 1_000), (30, 6_000, 6_000))

    assert polls.appended(10) == AppendTime(5_000, 5_000, 5_000)
    assert list(polls.left_ms) == [5_000, 5_000, 6_000]


def test_the_table_is_bounded_and_finer_for_what_is_newer() -> None:
    polls = OffsetTimes()
    for number in range(10_000):
        polls.note(10 * number, 2_000 * number)
        assert len(polls.ends) <= MAX_POINTS

    now_ms, gaps = polls.left_ms[-1], zip(polls.left_ms, polls.found_ms[1:], strict=False)
    for left_ms, found_ms in gaps:
        assert found_ms - left_ms <= max(2_000, GAP_SHARE * (now_ms - found_ms))
    assert now_ms - polls.left_ms[0] > 3_600_000
    assert KEPT_POINTS < MAX_POINTS
