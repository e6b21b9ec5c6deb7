"""The scenarios of histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    MetricsData,
)

from odradek.temporality import BadState, Engine
from odradek.temporality.exponential import ExponentialState
from odradek.temporality.histogram import HistogramState
from support.delta_clients import Scene, Store, cumulative, nanos
from support.examples import examples


def explicit(
    bounds: Sequence[float], counts: Sequence[int], start: float, time: float, total: float | None = 1.0
) -> Metric:
    metric = Metric(name="h")
    metric.histogram.aggregation_temporality = 1  # type: ignore[assignment]
    point = metric.histogram.data_points.add(
        start_time_unix_nano=nanos(start), time_unix_nano=nanos(time), count=sum(counts)
    )
    point.explicit_bounds.extend(bounds)
    point.bucket_counts.extend(counts)
    if total is not None:
        point.sum = total
    return metric


def exponential_point(
    scale: int,
    positive: Mapping[int, int],
    *,
    negative: Mapping[int, int] | None = None,
    threshold: float = 0.0,
    zeros: int = 0,
) -> ExponentialHistogramDataPoint:
    point = ExponentialHistogramDataPoint(scale=scale, zero_threshold=threshold, zero_count=zeros)
    point.count = zeros + sum(positive.values()) + sum((negative or {}).values())
    for buckets, dense in ((positive, point.positive), (negative or {}, point.negative)):
        if buckets:
            dense.offset = min(buckets)
            dense.bucket_counts.extend(buckets.get(i, 0) for i in range(min(buckets), max(buckets) + 1))
    return point


def exponential(point: ExponentialHistogramDataPoint, start: float, time: float) -> Metric:
    metric = Metric(name="e")
    metric.exponential_histogram.aggregation_temporality = 1  # type: ignore[assignment]
    point.start_time_unix_nano, point.time_unix_nano, point.sum = nanos(start), nanos(time), 1.0
    metric.exponential_histogram.data_points.append(point)
    return metric


def explicit_state(scene: Scene) -> HistogramState:
    (series,) = scene.series()
    assert isinstance(series.distribution, HistogramState)
    return series.distribution


def exponential_state(scene: Scene) -> ExponentialState:
    (series,) = scene.series()
    assert isinstance(series.distribution, ExponentialState)
    return series.distribution


def sent_histogram(data: MetricsData) -> HistogramDataPoint:
    return data.resource_metrics[0].scope_metrics[0].metrics[0].histogram.data_points[0]


def test_row_50_equal_bounds_add_up() -> None:
    scene = Scene()
    scene.push(explicit([1, 5], [1, 2, 3], 0, 60, 10.0))

    sent = sent_histogram(scene.push(explicit([1, 5], [1, 0, 0], 60, 120, 0.5)))

    assert (list(sent.bucket_counts), sent.count, sent.sum) == ([2, 2, 3], 7, 10.5)
    assert (sent.start_time_unix_nano, sent.time_unix_nano) == (nanos(0), nanos(120))


def test_row_51_other_bounds_begin_a_new_epoch() -> None:
    scene = Scene()
    scene.push(explicit([1, 5], [1, 2, 3], 0, 60))

    scene.push(explicit([1, 10], [1, 0, 0], 60, 120, 4.0))

    assert (explicit_state(scene).counts, scene.engine.counts.epochs) == ([1, 0, 0], 1)
    assert [(total, round(start, 3)) for _, total, start in scene.values()] == [(4.0, 60.001)]


def test_row_52_counts_that_do_not_fit_the_bounds_are_rejected() -> None:
    scene = Scene()

    scene.push(explicit([1, 2, 3], [1, 2, 3], 0, 60))

    assert (scene.values(), scene.engine.counts.rejected_points) == ([], {"buckets": 1})


def test_a_sum_that_is_missing_once_is_missing_from_then_on() -> None:
    scene = Scene()
    scene.push(explicit([], [], 0, 60))
    scene.push(explicit([], [], 60, 120, None))

    sent = sent_histogram(scene.push(explicit([], [], 120, 180)))

    assert not sent.HasField("sum")


def test_row_53_the_lower_scale_counts() -> None:
    scene = Scene()
    scene.push(exponential(exponential_point(3, {8: 1}), 0, 60))

    scene.push(exponential(exponential_point(1, {2: 1}), 60, 120))

    state = exponential_state(scene)
    assert (state.scale, state.positive) == (1, {2: 2})


def test_row_54_a_wide_span_lowers_the_scale() -> None:
    scene = Scene()

    scene.push(exponential(exponential_point(5, {0: 1, 400: 1}), 0, 60))

    state = exponential_state(scene)
    assert (state.scale, state.positive) == (3, {0: 1, 100: 1})


def test_row_55_the_larger_threshold_takes_the_buckets_below() -> None:
    scene = Scene()
    scene.push(exponential(exponential_point(0, {-3: 2, -2: 3, 0: 1}, threshold=0.1, zeros=1), 0, 60))

    scene.push(exponential(exponential_point(0, {1: 1}, threshold=0.5, zeros=4), 60, 120))

    state = exponential_state(scene)
    assert (state.zero_threshold, state.zero_count, state.positive) == (0.5, 10, {0: 1, 1: 1})
    assert state.count == state.zero_count + sum(state.positive.values())


def test_a_bucket_that_straddles_the_threshold_raises_it() -> None:
    scene = Scene()

    scene.push(exponential(exponential_point(0, {-2: 3, 0: 1}, negative={-2: 1}, threshold=0.3), 0, 60))

    state = exponential_state(scene)
    assert (state.zero_threshold, state.zero_count, state.positive) == (0.5, 4, {0: 1})
    assert state.negative == {}


@pytest.mark.parametrize("largest", [2**63, 2**64 - 1])
def test_no_count_of_a_histogram_stops_the_engine(largest: int) -> None:
    scene = Scene()
    for start in (0, 60):
        point = exponential_point(0, {0: 1}, zeros=1)
        point.count = point.zero_count = point.positive.bucket_counts[0] = largest
        scene.push(exponential(point, start, start + 60))
        metric = explicit([1], [1, 1], start, start + 60)
        metric.histogram.data_points[0].count = largest
        metric.histogram.data_points[0].bucket_counts[0] = largest
        sent = sent_histogram(scene.push(metric))

    assert (sent.count, sent.bucket_counts[0]) == (2**64 - 1, 2**64 - 1)


def test_histograms_survive_a_restart() -> None:
    scene, store = Scene(), Store()
    scene.push(exponential(exponential_point(2, {3: 1}, negative={7: 2}, zeros=1), 0, 60))
    scene.push(explicit([1, 5], [1, 2, 3], 0, 60, 2.5), instance=b"B" * 16)
    store.commit(scene.engine.take_changes())

    scene.restart(store)
    scene.push(exponential(exponential_point(2, {3: 1}), 60, 120))
    sent = sent_histogram(scene.push(explicit([1, 5], [1, 0, 0], 60, 120, 1.0), instance=b"B" * 16))

    state = exponential_state(scene)
    assert (state.positive, state.negative, state.zero_count, state.count) == ({3: 2}, {7: 2}, 1, 5)
    assert (list(sent.bucket_counts), sent.sum) == ([2, 2, 3], 3.5)


def test_a_damaged_byte_of_a_stored_state_is_found_or_harmless() -> None:
    scene, store = Scene(), Store()
    metrics = (explicit([1, 5], [1, 2, 3], 0, 60), exponential(exponential_point(2, {3: 1}), 0, 60))
    scene.push(cumulative(1.0, 0, 60), *metrics)
    store.commit(scene.engine.take_changes())
    ((instance_id, good),) = store.clients.items()
    refused = 0

    for place in range(len(good)):
        store.clients[instance_id] = bytes((*good[:place], good[place] ^ 0xFF, *good[place + 1 :]))
        try:
            store.load(Engine())
        except BadState:
            refused += 1

    assert 0 < refused < len(good)


buckets = st.dictionaries(st.integers(-300, 300), st.integers(1, 5), max_size=6)
points = st.builds(
    lambda scale, positive, negative, threshold, zeros: exponential_point(
        scale, positive, negative=negative, threshold=threshold, zeros=zeros
    ),
    st.integers(-10, 20),
    buckets,
    buckets,
    st.sampled_from([0.0, 1e-9, 0.3, 0.5, 2.0, 1e6]),
    st.integers(0, 3),
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(points, min_size=1, max_size=6))
def test_counts_are_never_lost(pushed: list[ExponentialHistogramDataPoint]) -> None:
    state = ExponentialState(pushed[0])
    for point in pushed[1:]:
        state.add(point)

    assert state.count == sum(point.count for point in pushed)
    assert state.count == state.zero_count + sum(state.positive.values()) + sum(state.negative.values())
    for found in (state.positive, state.negative):
        assert not found or max(found) - min(found) < 160
