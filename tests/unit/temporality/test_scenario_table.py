"""The scenarios of one stream: pushes in, total and start time out."""

from __future__ import annotations

import math
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from support.delta_clients import Scene, Way, counter, cumulative, d, gauge, point

NAN, INF = math.nan, math.inf
BIG = 2**53

Row = tuple[list[Metric], float | None, float, dict[str, Any]]
"""Pushes, total, start in seconds, and the counts that are not zero."""

ROWS: dict[str, Row] = {
    "1": ([d(5.0, 0, 60)], 5, 0, {}),
    "2": ([d(5.0, 0, 60), d(3.0, 60, 120)], 8, 0, {}),
    "3": ([d(5.0, 0, 60), d(0.0, 60, 120)], 5, 0, {}),
    "4": ([d(5.0, 0, 60), d(2.0, 120, 180)], 7, 0, {"gaps": 1, "gap_ns": 60 * 10**9}),
    "6": ([d(5.0, 0, 60), d(4.0, 30, 90)], 9, 0, {"overlaps": 1}),
    "7": ([d(5.0, 0, 60), d(4.0, 60, 120), d(1.0, 50, 55)], 10, 0, {"overlaps": 1}),
    "8": (
        [d(5.0, 0, 60), *(d(1.0, second - 3660, second - 3600) for second in range(60, 660, 60))],
        15,
        0,
        {"overlaps": 10},
    ),
    "9": ([d(5.0, 0, 60), d(3.0, 60, 172_800)], 8, 0, {}),
    "14": ([d(5.0, None, 60)], 5, 0, {"bad_starts": 1}),
    "15": ([d(5.0, 90, 60)], 5, 0, {"bad_starts": 1}),
    "16": ([d(5.0, 0, 60), d(-1.0, 60, 120)], 5, 0, {"rejected_points": {"negative": 1}}),
    "17-nan": ([d(5.0, 0, 60), d(NAN, 60, 120)], 5, 0, {"rejected_points": {"not_finite": 1}}),
    "17-inf": ([d(5.0, 0, 60), d(INF, 60, 120)], 5, 0, {"rejected_points": {"not_finite": 1}}),
    "18": (
        [d(5.0, 0, 60), counter(point(3.0, 60, 120), temporality=0)],
        5,
        0,
        {"rejected_points": {"temporality": 1}},
    ),
    "19": ([d(5, 0, 60), d(0.5, 60, 120)], 5.5, 0, {}),
    "21": ([d(BIG, 0, 60), d(1, 60, 120), d(1, 120, 180)], BIG + 2, 0, {"inexact_streams": 1}),
    "22": ([cumulative(10.0, 0, 60), cumulative(15.0, 0, 120)], 15, 0, {}),
    "23": ([cumulative(10.0, 0, 60), cumulative(4.0, 0, 120)], 4, 60.001, {"epochs": 1}),
    "24": ([cumulative(10.0, 0, 60), cumulative(4.0, 100, 120)], 4, 100, {"epochs": 1}),
    "25": ([d(5.0, 0, 60), cumulative(20.0, 0, 120)], 20, 60.001, {"epochs": 1}),
    "26": (
        [counter(point(5.0, 0, 60), is_monotonic=False), counter(point(-3.0, 60, 120), is_monotonic=False)],
        2,
        0,
        {},
    ),
    "41": ([d(5.0, 0, 60), d(50.0, 60, 660)], 55, 0, {}),
    "43": ([d(5.0, 0, 60), d(3.0, 120, 180)], 8, 0, {"gaps": 1, "gap_ns": 60 * 10**9}),
    "45": ([d(9.0, 290, 300)], 9, 290, {}),
    "46": ([d(5.0, 0, 60), d(4.0, 900, 960)], 9, 0, {"gaps": 1, "gap_ns": 840 * 10**9}),
}
NOT_COMPARED = ("records", "added_points")


@pytest.mark.parametrize("way", ["parsed", "layout"])
@pytest.mark.parametrize("row", ROWS)
def test_one_stream(row: str, way: Way) -> None:
    pushes, total, start, counted = ROWS[row]
    scene = Scene(way)

    for index, metric in enumerate(pushes):
        scene.push(metric, at=60 * (index + 1))

    ((name, found_total, found_start),) = scene.values()
    assert (name, found_total, round(found_start, 3)) == ("c", total, start)
    counts = scene.engine.counts
    found = {name: getattr(counts, name) for name in counts.__slots__ if name not in NOT_COMPARED}
    assert {name: value for name, value in found.items() if value} == counted


@pytest.mark.parametrize("way", ["parsed", "layout"])
@pytest.mark.parametrize("row", ["5"])
def test_a_gap_begins_a_new_epoch_if_that_is_asked_for(row: str, way: Way) -> None:
    scene = Scene(way, reset_on_gap=True)
    scene.push(d(5.0, 0, 60))
    before = scene.values()

    scene.push(d(2.0, 120, 180))

    assert (before, scene.values()) == ([("c", 5, 0)], [("c", 2, 120)])


@pytest.mark.parametrize("way", ["parsed", "layout"])
@pytest.mark.parametrize("row", ["20"])
def test_a_tenth_ten_thousand_times_is_exact(row: str, way: Way) -> None:
    scene = Scene(way)
    scene.push(d(0.1, 0, 60))

    for index in range(1, 10_000):
        scene.push(d(0.1, 60 * index, 60 * index + 60))

    assert scene.totals() == {"c": 1000.0}


@pytest.mark.parametrize("way", ["parsed", "layout"])
@pytest.mark.parametrize("row", ["27"])
def test_streams_end_by_their_own_silence(row: str, way: Way) -> None:
    scene = Scene(way, keep_gauges=True)
    scene.push(d(5.0, 0, 60), gauge(7.0), at=60)
    for second in (120, 180, 240, 300):
        scene.push(at=second)

    shown = [scene.totals(at=second) for second in (214, 216)]

    assert shown == [{"c": 5, "g": 7}, {}]


@pytest.mark.parametrize("way", ["parsed", "layout"])
@pytest.mark.parametrize("row", ["13"])
def test_the_last_value_of_a_gauge_counts(row: str, way: Way) -> None:
    scene = Scene(way, keep_gauges=True)

    scene.push(gauge(1.0, 2.0))

    assert scene.totals() == {"g": 2}


@pytest.mark.parametrize("way", ["parsed", "layout"])
@pytest.mark.parametrize("row", ["57"])
def test_a_gauge_without_a_number_is_not_shown(row: str, way: Way) -> None:
    scene = Scene(way, keep_gauges=True)
    scene.push(gauge(NAN))
    before = scene.totals()

    scene.push(gauge(4.0, time=120))

    assert (before, scene.totals()) == ({}, {"g": 4})
