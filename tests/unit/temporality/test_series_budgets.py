"""Series over budget, budget by budget."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.temporality.budgets.policy import Exceeded, Level, Route
from support.budget_clients import BudgetScene, facts, gauge, instance, metric
from support.delta_clients import Store, counter, nanos, point

LAG = "org.apache.kafka.consumer.fetch.manager.records.lag"
LATENCY = "org.apache.kafka.consumer.fetch.manager.fetch.latency.avg"


def test_a_client_over_the_budget_of_its_app_is_in_other_of_the_app() -> None:
    scene = BudgetScene(app_series=2)
    scene.push(1, metric("c", 5, 60, topic="a"), metric("c", 1, 60, topic="b"))

    scene.push(2, metric("c", 2, 60, topic="a"), metric("c", 3, 60))

    assert scene.values("c") == {
        ("1", "topic=a"): 5,
        ("1", "topic=b"): 1,
        ("alice/shop", "topic=other"): 2,
        ("alice/shop",): 3,
    }


def test_other_of_a_wider_budget_has_what_would_exceed_it() -> None:
    scene = BudgetScene(principal_series=1)
    scene.push(1, metric("c", 5, 60))

    scene.push(2, metric("c", 2, 60), of=facts("cart"))
    scene.push(3, metric("c", 3, 60), of=facts("cart", principal="bob"))

    assert scene.values("c") == {("1",): 5, ("alice/other",): 2, ("3",): 3}


def test_without_room_for_other_of_the_app_the_series_go_to_other_of_all() -> None:
    scene = BudgetScene(app_series=1, series=2)
    scene.push(1, metric("c", 1, 60))
    scene.push(2, metric("c", 1, 60), of=facts("cart"))

    scene.push(3, metric("c", 7, 60))

    assert scene.values("c") == {("1",): 1, ("2",): 1, ("other/other",): 7}


def test_a_client_near_its_budget_loses_the_label_with_most_values() -> None:
    scene = BudgetScene(client_series=10)
    first = [metric("c", 1, 60, topic="a", partition=number) for number in range(8)]
    scene.push(1, *first, metric("c", 1, 60, topic="b", partition=0))

    scene.push(1, *[metric("c", 1, 120, topic="a", partition=number) for number in range(20)], at=120)

    found = scene.values("c")
    assert found["1", "partition=other", "topic=a"] == 12
    assert len(found) == 10


def test_a_client_over_its_budget_loses_all_labels() -> None:
    scene = BudgetScene(client_series=10)
    scene.push(1, *[metric("c", 1, 60, topic=f"t{number}", partition=number) for number in range(40)])

    found = scene.values("c")
    assert len(found) == 11
    assert found["1", "partition=other", "topic=other"] == 30
    assert sum(found.values()) == 40


def test_a_label_with_too_many_values_becomes_other_alone() -> None:
    scene = BudgetScene(label_values=2)

    scene.push(1, *[metric("c", 1, 60, user=f"u{number}", topic="a") for number in range(5)])
    scene.push(2, metric("c", 1, 60, user="u9", topic="a"), metric("c", 1, 60, user="u1", topic="a"))

    assert scene.values("c") == {
        ("1", "topic=a", "user=u0"): 1,
        ("1", "topic=a", "user=u1"): 1,
        ("1", "topic=a", "user=other"): 3,
        ("2", "topic=a", "user=other"): 1,
        ("2", "topic=a", "user=u1"): 1,
    }


def test_refused_series_are_counted_and_not_shown() -> None:
    scene = BudgetScene(app_series=1, refuse=True)
    scene.push(1, metric("c", 5, 60))

    scene.push(2, metric("c", 2, 60))

    assert scene.values("c") == {("1",): 5}
    assert scene.folding.policy.counts.refused == {"app": 1}
    assert scene.folding.policy.counts.folded == {}


def test_series_that_exist_are_not_refused() -> None:
    scene = BudgetScene(app_series=1)
    scene.push(1, metric("c", 5, 60))

    scene.push(1, metric("c", 5, 120), metric("d", 1, 120), at=120)

    assert scene.values("c") == {("1",): 10}
    assert scene.values("d") == {("alice/shop",): 1}


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        pytest.param(LAG, ("topic=other",), 7.0, id="sum"),
        pytest.param("org.acme.anything", ("topic=other",), 4.0, id="unknown names: max"),
        pytest.param(LATENCY, ("aggregate=mean", "topic=other"), 3.5, id="mean"),
        pytest.param(
            "org.apache.kafka.consumer.fetch.manager.records.lead.min", ("topic=other",), 3.0, id="min"
        ),
    ],
)
def test_gauges_are_combined_by_their_meaning(name: str, labels: tuple[str, ...], expected: float) -> None:
    scene = BudgetScene(app_series=1)
    scene.push(1, metric("c", 1, 60))
    scene.push(2, gauge(name, 3, 60, topic="a"))
    scene.push(3, gauge(name, 4, 60, topic="b"))
    scene.push(4, gauge(name, math.nan, 60, topic="b"))

    scene.folding.refresh(scene.now_ms)

    assert scene.values(name) == {("alice/shop", *labels): expected}


def test_a_gauge_without_live_clients_ends() -> None:
    scene = BudgetScene(app_series=1)
    scene.push(1, metric("c", 1, 60))
    scene.push(2, gauge(LAG, 3, 60))
    scene.push(3, gauge(LAG, 4, 60))
    scene.push(3, gauge(LAG, 5, 300), at=300)
    scene.folding.sweep(scene.now_ms)

    scene.folding.refresh(scene.now_ms)

    assert scene.values(LAG) == {("alice/shop",): 5}


def test_new_clients_have_their_own_series_when_others_have_left_for_long() -> None:
    """I4."""
    scene = BudgetScene(app_series=10)
    scene.push(1, *[metric(f"c{number}", 1, 60) for number in range(9)])
    scene.push(2, metric("c", 1, 60), metric("d", 1, 60))
    scene.push(2, metric("c", 1, 240), at=240)
    scene.folding.sweep(scene.now_ms + 40_000)

    scene.push(3, metric("c", 1, 300), at=300)
    early = set(scene.values("c"))
    scene.push(2, metric("c", 1, 500), at=500)
    scene.push(3, metric("c", 1, 600), at=600)
    scene.push(4, metric("c", 1, 700), at=700)

    assert early == {("alice/shop",)}
    assert scene.values("c") == {("alice/shop",): 5, ("4",): 1}


def test_a_folded_client_is_forgotten_as_soon_as_it_is_silent() -> None:
    scene = BudgetScene(app_series=1)
    scene.push(1, metric("c", 1, 60))
    scene.push(2, metric("c", 1, 60))

    scene.push(1, metric("c", 1, 400), at=400)
    scene.folding.sweep(scene.now_ms)

    assert instance(2) not in scene.scene.engine.clients.states
    assert scene.totals() == {"c": 3}


def test_a_folded_cumulative_counter_adds_its_growth() -> None:
    scene = BudgetScene(app_series=1)
    store = Store()
    scene.push(1, metric("c", 1, 60))
    scene.push(2, counter(point(10, 0, 60), temporality=2))
    scene.commit(store)
    scene.restart(store)

    scene.push(2, counter(point(15, 0, 120), temporality=2), at=120)
    scene.push(2, counter(point(4, 130, 180), temporality=2), at=180)

    assert scene.values("c") == {("1",): 1, ("alice/shop",): 19}


def histogram(bounds: list[float], counts: list[int], total: float, at: float) -> Metric:
    found = Metric(name="h")
    found.histogram.aggregation_temporality = 1  # type: ignore[assignment]
    data = found.histogram.data_points.add(
        start_time_unix_nano=nanos(at - 60), time_unix_nano=nanos(at), count=sum(counts), sum=total
    )
    data.explicit_bounds.extend(bounds)
    data.bucket_counts.extend(counts)
    return found


def test_folded_histograms_are_added_by_their_common_bounds() -> None:
    scene = BudgetScene(app_series=1)
    scene.push(1, metric("c", 1, 60))
    scene.push(2, histogram([1, 5, 10], [1, 2, 3, 4], 50, 60))
    scene.push(2, histogram([1, 5, 10], [1, 0, 0, 0], 1, 120), at=120)

    scene.push(3, histogram([5, 7], [2, 1, 1], 20, 120), at=120)

    [(_, _, total)] = [each for each in scene.shown(scene.now) if each[1].name == "h"]
    [series] = [
        each
        for instance_id in scene.scene.engine.clients.states
        for each in scene.scene.engine.series(instance_id)
        if each.identity.name == "h"
    ]
    assert total == 71
    assert series.distribution is not None
    assert (series.distribution.bounds, series.distribution.counts) == ((5.0,), [6, 9])  # type: ignore[union-attr]
    assert series.distribution.count == 15


def test_decisions_survive_a_restart() -> None:
    """I7."""
    scene, store = BudgetScene(app_series=4, client_series=4), Store()
    scene.push(1, *[metric("c", 1, 60, topic=topic) for topic in ("a", "b", "c")])
    scene.push(2, metric("c", 1, 60, topic="a"), metric("c", 1, 60, topic="b"))
    many = [metric("c", 1, 60, topic=f"t{number}") for number in range(5)]
    scene.push(3, *many, of=facts("cart"))
    before = scene.values("c")
    scene.commit(store)

    scene.restart(store)
    assert scene.values("c") == before
    scene.push(2, metric("c", 2, 120, topic="a"), at=120)
    scene.push(3, *[metric("c", 1, 120, topic=f"t{number}") for number in range(5)], of=facts("cart"), at=120)

    assert before == {
        ("1", "topic=a"): 1,
        ("1", "topic=b"): 1,
        ("1", "topic=c"): 1,
        ("alice/shop", "topic=other"): 2,
        ("3", "topic=t0"): 1,
        ("3", "topic=t1"): 1,
        ("3", "topic=t2"): 1,
        ("3", "topic=other"): 2,
    }
    assert scene.values("c") == {key: value if key[0] == "1" else 2 * value for key, value in before.items()}


def test_each_budget_and_metric_is_told_once_an_hour() -> None:
    scene = BudgetScene(app_series=1)
    scene.push(1, metric("c", 1, 60))

    scene.push(1, metric("d", 1, 120), at=120)
    scene.push(1, metric("d", 1, 180, topic="a"), at=180)
    first = scene.folding.policy.take_exceeded()
    scene.push(1, metric("d", 1, 4_000, topic="b"), at=4_000)
    scene.push(2, metric("d", 1, 4_000), at=4_000)

    assert first == [Exceeded("app", "alice/shop", "d", Route(Level.APP))]
    assert [each.metric for each in scene.folding.policy.take_exceeded()] == ["d", ""]
    assert scene.folding.policy.counts.folded == {"app": 4}


def test_a_stream_with_the_number_of_a_forgotten_histogram_counts_as_one_series() -> None:
    scene = BudgetScene(series=1_000)
    scene.scene.engine.clients.limits = replace(scene.scene.engine.clients.limits, retain_ms=600_000)
    scene.push(1, metric("c", 1, 60), histogram([1, 5, 10], [1, 2, 3, 4], 50, 60))
    (before,) = scene.folding.members.live.values()
    assert before.live == 7
    for at in range(120, 1_300, 60):
        scene.push(1, metric("c", 1, at), at=at)

    for at, name in ((1_300, "new"), (1_360, "newer")):  # the first makes room
        scene.push(1, metric("c", 1, at), metric(name, 1, at), at=at)

    (member,) = scene.folding.members.live.values()
    assert member is before
    assert member.live == len(member.client.shape.keys) == 3
    assert member.weights == {}
