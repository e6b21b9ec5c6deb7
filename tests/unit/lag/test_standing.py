"""The lag in records of each kind of offset that a group can have."""

from __future__ import annotations

import pytest

from odradek.lag.standing import Ends, Standing, standing

OPEN_LOG = Ends(start=0, high_watermark=100, last_stable=100)
CUT_LOG = Ends(start=60, high_watermark=100, last_stable=100)


@pytest.mark.parametrize(
    ("position", "ends", "expected"),
    [
        pytest.param(40, OPEN_LOG, Standing(40, 60, 0, 0, 0), id="behind"),
        pytest.param(100, OPEN_LOG, Standing(100, 0, 0, 0, 0), id="fully read"),
        pytest.param(150, OPEN_LOG, Standing(150, 0, 0, 0, 50), id="past the end"),
        pytest.param(20, CUT_LOG, Standing(60, 40, 0, 40, 0), id="below the log start"),
        pytest.param(60, CUT_LOG, Standing(60, 40, 0, 0, 0), id="at the log start"),
        pytest.param(0, Ends(0, 0, 0), Standing(0, 0, 0, 0, 0), id="never written"),
        pytest.param(5, Ends(100, 100, 100), Standing(100, 0, 0, 95, 0), id="all deleted unread"),
        pytest.param(40, Ends(0, 100, 70), Standing(40, 60, 30, 0, 0), id="open transaction ahead"),
        pytest.param(80, Ends(0, 100, 70), Standing(80, 20, 20, 0, 0), id="within the open transaction"),
        pytest.param(
            120, Ends(0, 100, 70), Standing(120, 0, 0, 0, 20), id="past the end of an open transaction"
        ),
    ],
)
def test_the_figures_of_an_offset(position: int, ends: Ends, expected: Standing) -> None:
    assert standing(position, ends) == expected


def test_a_reader_of_committed_records_waits_for_what_is_unstable() -> None:
    found = standing(40, Ends(0, 100, 70))
    assert found.lag - found.unstable == 30


def test_markers_of_transactions_are_no_lag() -> None:
    assert standing(10, Ends(0, 11, 11), only_markers=True) == Standing(10, 0, 0, 0, 0)


@pytest.mark.parametrize("ends", [Ends(-1, 5, 5), Ends(7, 5, 5), Ends(0, 5, 6), Ends(0, 5, -1)])
def test_offsets_that_no_broker_means_are_not_valid(ends: Ends) -> None:
    assert OPEN_LOG.is_valid
    assert not ends.is_valid


def test_for_a_reader_of_committed_records_the_last_stable_offset_is_the_end() -> None:
    ends = Ends(0, 50, 40)

    assert ends.seen_by(read_committed=True) == Ends(0, 40, 40)
    assert ends.seen_by(read_committed=False) is ends
