"""Evaluation by movement: a lag alone does not say whether a reader gets on."""

from __future__ import annotations

import pytest

from odradek.lag.movement import (
    LONGEST_WINDOW_MS,
    RESTS_MS,
    WINDOW_MS,
    Movement,
    Progress,
    RetentionShare,
    retention_share,
)


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
        pytest.param([(10, 50), (20, 90), (70, 130)], Progress.STEADY, 1, None, id="shrinks meanwhile"),
        pytest.param([(0, 500), (1_000, 1_900)], Progress.STEADY, 40, None, id="read in seconds"),
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


def test_only_the_samples_of_the_window_count() -> None:
    movement = moved(*[(0, 100)] * 5, *[(10 * number, 1_000) for number in range(10)])

    assert movement.samples[-1].time_ms - movement.samples[0].time_ms == WINDOW_MS
    assert movement.is_full
    assert movement.progress is Progress.CATCHING_UP


def test_a_window_is_full_after_its_time_and_not_before() -> None:
    movement = moved((1, 9), *[(5, 50)] * 4)
    assert not movement.is_full

    movement.note(60_000, 5, 90)

    assert movement.is_full
    assert movement.progress is Progress.FALLING_BEHIND


def test_a_reader_that_was_never_seen_to_move_may_rest() -> None:
    movement = Movement()
    for time_ms in range(0, RESTS_MS, 30_000):
        movement.note(time_ms, 5, 10)
    assert not movement.is_full

    movement.note(RESTS_MS, 5, 10)

    assert movement.is_full
    assert movement.progress is Progress.STALLED


@pytest.mark.parametrize(("every_ms", "window_ms"), [(120_000, 240_000), (900_000, LONGEST_WINDOW_MS)])
def test_a_reader_that_commits_seldom_is_not_stalled_meanwhile(every_ms: int, window_ms: int) -> None:
    movement, seen = Movement(), set()
    for time_ms in range(0, 10 * every_ms, 30_000):
        offset = time_ms // every_ms * every_ms
        movement.note(time_ms, offset, time_ms - offset + 100)
        if time_ms > 3 * every_ms:
            seen.add(movement.progress)
    assert movement.window_ms == window_ms
    assert not seen & {Progress.STALLED, Progress.FALLING_BEHIND}

    for time_ms in range(10 * every_ms, 10 * every_ms + 2 * window_ms, 30_000):
        movement.note(time_ms, offset, time_ms - offset)

    assert movement.is_full
    assert movement.progress is Progress.STALLED


def test_of_samples_that_are_near_each_other_the_last_one_counts() -> None:
    movement = Movement()
    for time_ms in range(0, 60_000, 1_000):
        movement.note(time_ms, time_ms, 100)

    assert 10 <= len(movement.samples) <= 13
    assert movement.samples[-1].time_ms == 59_000


def test_two_samples_at_one_time_are_one() -> None:
    movement = Movement()
    movement.note(5, 0, 10)
    movement.note(5, 2, 8)

    assert [each.lag for each in movement.samples] == [8]


def test_when_retention_will_take_the_oldest_unread_record() -> None:
    assert retention_share(45_000, 60_000) == RetentionShare(0.75, 15_000)
    assert retention_share(90_000, 60_000) == RetentionShare(1.5, 0)
    assert retention_share(90_000, -1) is None
