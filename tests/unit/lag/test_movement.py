"""Evaluation by movement: a lag alone does not say whether a reader gets on."""

from __future__ import annotations

import pytest

from odradek.lag.movement import SAMPLES, Movement, Progress, RetentionShare, retention_share


def moved(*samples: tuple[int, int]) -> Movement:
    """Samples of offset and end, ten seconds apart."""
    movement = Movement()
    for number, (offset, end) in enumerate(samples):
        movement.note(10_000 * number, offset, end - offset)
    return movement


@pytest.mark.parametrize(
    ("samples", "progress", "per_second", "caught_up_in_s"),
    [
        pytest.param([], Progress.UNKNOWN, None, None, id="nothing"),
        pytest.param([(10, 50)], Progress.UNKNOWN, None, None, id="one sample"),
        pytest.param([(10, 10), (10, 10)], Progress.CAUGHT_UP, 0, 0, id="idle"),
        pytest.param([(10, 30), (30, 30), (30, 50)], Progress.CAUGHT_UP, 0, None, id="at the end meanwhile"),
        pytest.param([(10, 50), (10, 50)], Progress.STALLED, 0, None, id="stalled"),
        pytest.param([(10, 50), (10, 90)], Progress.STALLED, 4, None, id="stalled while others write"),
        pytest.param([(10, 50), (40, 60)], Progress.CATCHING_UP, -2, 10, id="catching up"),
        pytest.param([(10, 50), (20, 90)], Progress.FALLING_BEHIND, 3, None, id="falling behind"),
        pytest.param([(10, 1_010), (500, 1_501)], Progress.STEADY, 0.1, None, id="steady"),
        pytest.param([(10, 50), (40, 50), (5, 50)], Progress.REWOUND, 0.25, None, id="reset backwards"),
    ],
)
def test_what_a_reader_does(
    samples: list[tuple[int, int]],
    progress: Progress,
    per_second: float | None,
    caught_up_in_s: float | None,
) -> None:
    movement = moved(*samples)

    assert movement.progress is progress
    assert movement.lag_per_second == per_second
    assert movement.caught_up_in_s == caught_up_in_s


def test_only_the_last_samples_count() -> None:
    movement = moved(*[(0, 100)] * 5, *[(10 * number, 1_000) for number in range(SAMPLES)])

    assert len(movement.samples) == SAMPLES
    assert movement.progress is Progress.CATCHING_UP


def test_two_samples_at_one_time_are_one() -> None:
    movement = Movement()
    movement.note(5, 0, 10)
    movement.note(5, 2, 8)

    assert [each.lag for each in movement.samples] == [8]


def test_when_retention_will_take_the_oldest_unread_record() -> None:
    assert retention_share(45_000, 60_000) == RetentionShare(0.75, 15_000)
    assert retention_share(90_000, 60_000) == RetentionShare(1.5, 0)
    assert retention_share(90_000, -1) is None
