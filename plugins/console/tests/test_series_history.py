"""Rows of a client: fewer with age, increases that are never lost, and series that move."""

from __future__ import annotations

import math

import pytest

from odradek.temporality import Engine
from odradek_console.engine.series_history import LEVELS, SeriesHistory
from support.delta_clients import EPOCH_S, A, Scene, counter, gauge, point

MAX = "org.apache.kafka.producer.request.latency.max"


class Pushing:
    """A client that pushes, and its history."""

    def __init__(self) -> None:
        self.scene = Scene(keep_gauges=True)
        self.history = SeriesHistory()

    @property
    def engine(self) -> Engine:
        return self.scene.engine

    def push(self, at: float, delta: float, since: float, largest: float | None = None) -> None:
        metrics = [counter(point(delta, since, at), name="sent")]
        if largest is not None:
            high = gauge(largest, time=at)
            high.name = MAX
            metrics.append(high)
        self.engine.convert(self.scene.record(*metrics, at=at))
        self.history.add(ms(at), self.engine.clients.states[A])

    def place(self, name: str) -> int:
        shape = self.history.shape
        assert shape is not None
        return [each.name for each in shape.identities].index(name)


def ms(second: float) -> int:
    return int((EPOCH_S + second) * 1000)


@pytest.fixture
def pushing() -> Pushing:
    return Pushing()


def test_a_counter_is_shown_per_second(pushing: Pushing) -> None:
    pushing.push(60, 100, 0)

    pushing.push(120, 600, 60)

    (shown,) = pushing.history.points(pushing.place("sent"))
    assert shown == (ms(120), 10.0)


def test_old_rows_are_united_and_keep_increases_and_peaks(pushing: Pushing) -> None:
    for second in range(10, 3700, 10):
        pushing.push(second, 5, second - 10, 99 if second == 20 else 1)

    points = list(pushing.history.points(pushing.place(MAX)))

    fine, middle, _ = pushing.history.levels
    assert (len(fine), len(middle)) == (91, 48)
    assert max(each.value for each in points) == 99
    assert all(each.value == 0.5 for each in pushing.history.points(pushing.place("sent")))


def test_recent_rows_are_of_a_time_or_at_least_some(pushing: Pushing) -> None:
    for second in range(300, 9_000, 300):
        pushing.push(second, 1, second - 300)

    recent = [row.time_ms for row in pushing.history.recent(600_000, 1)]
    some = [row.time_ms for row in pushing.history.recent(1, 5)]

    assert recent == [ms(8_100), ms(8_400), ms(8_700)]
    assert some == [ms(7_500), ms(7_800), ms(8_100), ms(8_400), ms(8_700)]


def test_the_oldest_rows_end(pushing: Pushing) -> None:
    for second in range(300, 50_000, 300):
        pushing.push(second, 1, second - 300)

    (_, _, coarse), span_ms = pushing.history.levels, sum(LEVELS[-1:][0][1:])

    assert coarse[0].time_ms >= ms(49_800) - span_ms
    assert len(pushing.history.rows()) <= span_ms // 300_000 + 1


def test_memory_is_accounted_for_each_row(pushing: Pushing) -> None:
    empty = SeriesHistory().held_bytes

    pushing.push(60, 1, 0, 7)
    with_one = pushing.history.held_bytes
    pushing.push(120, 1, 60, 7)

    assert with_one - empty == 2 * 9 + 170 + 2 * 4
    assert pushing.history.held_bytes - with_one == 170 + 2 * 4


def test_a_new_series_has_no_values_before_its_first_push(pushing: Pushing) -> None:
    pushing.push(60, 1, 0)
    pushing.push(120, 1, 60, 3)

    points = list(pushing.history.points(pushing.place(MAX)))

    assert points == [(ms(120), 3.0)]
    assert not any(math.isinf(each.value) for each in pushing.history.points(pushing.place("sent")))


def test_a_missing_push_is_no_dip(pushing: Pushing) -> None:
    pushing.push(60, 60, 0)
    pushing.push(120, 60, 60)

    pushing.push(240, 120, 120)

    assert [each.value for each in pushing.history.points(pushing.place("sent"))] == [1.0, 1.0]
