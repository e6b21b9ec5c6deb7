"""The table of ends and times against a simulated log whose appends have known times."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from odradek.lag.offset_times import MAX_POINTS, OffsetTimes
from odradek.lag.standing import Ends, standing

OFFSETS = st.integers(0, 1_000)
gaps_ms = st.lists(st.sampled_from([0, 0, 1, 30, 700, 5_000, 90_000, 3_600_000]), min_size=1, max_size=300)
polls = st.tuples(st.sampled_from([1_000, 2_000, 15_000]), st.integers(0, 400))


@given(gaps_ms, polls, st.data())
def test_bounds_hold_for_every_record(gaps: list[int], poll: tuple[int, int], data: st.DataObject) -> None:
    """Whatever the load, an append is between its bounds, and never later than the poll that saw it."""
    appends_ms, now_ms = [], 0
    for gap in gaps:
        now_ms += gap
        appends_ms.append(now_ms)
    interval_ms, delay_ms = poll
    table, base_ms = OffsetTimes(), data.draw(st.integers(0, now_ms))
    # polls at a fixed interval; of long silences only some, which changes no bound but those of the idle time
    times_ms = sorted({base_ms, *(each + interval_ms - each % interval_ms for each in appends_ms)})
    seen = 0
    for sent_ms in (each for each in times_ms if each >= base_ms):
        # the log's owner looks somewhere between the request and the response
        looked_ms = sent_ms + data.draw(st.integers(0, delay_ms)) if delay_ms else sent_ms
        seen = max(seen, bisect_left(appends_ms, looked_ms + 1))
        table.note(seen, sent_ms, sent_ms + delay_ms)
    assert len(table.ends) <= MAX_POINTS
    assert list(table.ends) == sorted(set(table.ends))

    for offset in range(seen):
        lying_ms = data.draw(st.integers(-(10**6), 10**9)) if offset % 50 == 0 else None
        found = table.appended(offset, lying_ms)
        if found is None:
            assert lying_ms is None
            assert table.is_older(offset)
            continue
        assert (found.earliest_ms is None) == table.is_older(offset)
        assert (found.earliest_ms or -1) <= appends_ms[offset] <= found.latest_ms
        if found.error_ms is not None:
            assert abs(found.time_ms - appends_ms[offset]) <= found.error_ms
    assert table.appended(seen) is None


@given(gaps_ms)
def test_an_owner_of_the_log_knows_every_time_within_an_interval_or_eight_percent(gaps: list[int]) -> None:
    table, end, now_ms, appends_ms = OffsetTimes(), 0, 0, []
    table.note(0, 0)
    for gap in gaps:
        for _ in range(min(gap // 2_000, 3)):  # silence: three polls of it are as good as all
            now_ms += 2_000
            table.note(end, now_ms)
        now_ms += max(gap - 2_000 * min(gap // 2_000, 3), 0)
        table.note(end, max(now_ms - 2_000, 0))
        appends_ms.append(now_ms)
        end += 1
        now_ms += 2_000
        table.note(end, now_ms)

    for offset in range(table.ends[0], end):
        found = table.appended(offset)
        assert found is not None
        age_ms = now_ms - appends_ms[offset]
        assert abs(found.time_ms - appends_ms[offset]) <= max(4_000, 0.1 * age_ms)


@given(OFFSETS, OFFSETS, OFFSETS, OFFSETS)
def test_no_figure_is_negative_and_together_they_make_the_difference(
    position: int, start: int, length: int, open_records: int
) -> None:
    end = start + length
    ends = Ends(start, end, max(end - open_records, 0))

    found = standing(position, ends)

    assert min(found) >= 0
    assert found.unstable <= found.lag <= length
    assert end - position == found.lag + found.lost - found.ahead
    assert standing(position, ends, only_markers=True).lag == 0
