"""Points of one stream in one push: their times decide, not their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint

from support.delta_clients import Scene, counter, gauge, metrics_data, nanos, point, points_of

Write = Callable[[Sequence[NumberDataPoint], int], list[Metric]]
Windows = list[tuple[float, int, int]]
"""Value, start and time in seconds, the oldest first."""


def one_metric(points: Sequence[NumberDataPoint], temporality: int) -> list[Metric]:
    return [counter(*points, temporality=temporality)]


def many_metrics(points: Sequence[NumberDataPoint], temporality: int) -> list[Metric]:
    """As a batch of exports has them: each with a metric of its own."""
    return [counter(each, temporality=temporality) for each in points]


@pytest.mark.parametrize("write", [one_metric, many_metrics])
@pytest.mark.parametrize(
    ("temporality", "windows", "total", "start", "counted"),
    [
        (1, [(5.0, 0, 60), (4.0, 60, 120), (1.0, 120, 180)], 10.0, 0, (0, 0, 0)),
        (1, [(5.0, 0, 60), (4.0, 30, 90), (1.0, 80, 180)], 10.0, 0, (0, 0, 2)),  # overlaps
        (1, [(5.0, 0, 60), (4.0, 90, 120), (1.0, 120, 180)], 10.0, 0, (0, 1, 0)),  # a gap
        (1, [(5.0, 0, 60), (4.0, 20, 60), (1.0, 60, 90)], 10.0, 0, (0, 0, 1)),  # equal times
        (2, [(5.0, 0, 60), (9.0, 0, 120), (10.0, 0, 180)], 10.0, 0, (0, 0, 0)),
        (2, [(5.0, 0, 60), (9.0, 0, 120), (2.0, 0, 180)], 2.0, 120.001, (1, 0, 0)),  # it falls
        (2, [(5.0, 0, 60), (9.0, 0, 120), (2.0, 130, 180)], 2.0, 130, (1, 0, 0)),  # it starts later
        (2, [(5.0, 0, 60), (2.0, 60, 60), (3.0, 60, 120)], 3.0, 60.001, (1, 0, 0)),  # equal times
    ],
)
def test_the_places_of_points_do_not_matter(
    write: Write,
    temporality: int,
    windows: Windows,
    total: float,
    start: float,
    counted: tuple[int, int, int],
) -> None:
    for order in permutations(windows):
        scene = Scene()

        sent = points_of(scene.push(*write([point(*each) for each in order], temporality)))

        counts = scene.engine.counts
        found = [(each.as_double, each.time_unix_nano) for each in sent]
        assert found == [(total, nanos(windows[-1][2]))]
        assert sent[0].start_time_unix_nano == pytest.approx(nanos(start), abs=1_000)
        assert scene.totals() == {"c": total}
        assert (counts.epochs, counts.gaps, counts.overlaps) == counted
        assert (counts.added_points, counts.duplicates_in_push, counts.bad_starts) == (3, 2, 0)


def test_a_total_that_begins_again_after_a_gap_has_the_points_after_it() -> None:
    for order in permutations([(5.0, 0, 60), (4.0, 90, 120), (1.0, 120, 180)]):
        scene = Scene(reset_on_gap=True)

        scene.push(counter(*[point(*each) for each in order]))

        assert scene.values() == [("c", 5, 90)]


def test_the_newest_value_of_a_gauge_counts() -> None:
    for order in permutations([(1.0, 60), (2.0, 120), (3.0, 180)]):
        scene = Scene(keep_gauges=True)

        scene.push(*[gauge(value, time=time) for value, time in order])

        assert scene.totals() == {"g": 3}


def test_points_of_a_gauge_with_one_time_or_none_stay_in_their_order() -> None:
    scene = Scene(keep_gauges=True)
    timeless = gauge(3.0, 1.0, time=60)
    for each in timeless.gauge.data_points:
        each.ClearField("time_unix_nano")

    scene.push(gauge(2.0, 4.0, time=60))
    before = scene.totals()
    scene.push(timeless, at=120)

    assert (before, scene.totals()) == ({"g": 4}, {"g": 1})


@pytest.mark.parametrize("temporality", [1, 2])
def test_the_places_of_histograms_do_not_matter(temporality: int) -> None:
    counts = {1: [[1, 0], [1, 1], [0, 2]], 2: [[1, 0], [2, 1], [2, 3]]}[temporality]
    for order in permutations(enumerate(counts)):
        scene = Scene()
        metric = Metric(name="h")
        metric.histogram.aggregation_temporality = temporality  # type: ignore[assignment]
        for number, each in order:
            metric.histogram.data_points.add(
                start_time_unix_nano=nanos(60 * number if temporality == 1 else 0),
                time_unix_nano=nanos(60 * number + 60),
                explicit_bounds=[0.5],
                bucket_counts=each,
                count=sum(each),
                sum=float(sum(each)),
            )

        sent = scene.push(metric).resource_metrics[0].scope_metrics[0].metrics[0].histogram.data_points

        assert [(list(each.bucket_counts), each.count, each.sum) for each in sent] == [([2, 3], 5, 5.0)]
        assert scene.engine.counts.epochs == 0


def test_a_stream_ends_if_its_newest_point_has_no_value() -> None:
    ended = point(None, 60, 120)
    ended.flags = 1
    for order in permutations([point(5.0, 0, 60), ended]):
        scene = Scene()

        scene.push(data=metrics_data([counter(*order)], {"client_id": "orders"}).SerializeToString())

        assert scene.totals(at=120) == {}
