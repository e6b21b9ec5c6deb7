"""The origins of series, by counts alone."""

from __future__ import annotations

import pytest

from odradek.temporality.budgets.ranking import report, top, usages
from odradek.temporality.budgets.series_counts import HOUR_MS, SeriesCount
from support.budget_clients import BudgetScene, facts, metric


@pytest.fixture
def scene() -> BudgetScene:
    """Two apps of two principals; client 3 has sent most."""
    made = BudgetScene(series=100, app_series=10, principal_series=20)
    made.push(1, metric("c", 1, 60, topic="a"), of=facts("cart"))
    made.push(2, metric("c", 1, 60, topic="b"), metric("d", 1, 60), of=facts("shop", software="rust"))
    labels = [{"topic": f"t{number}", "user": "x"} for number in range(5)]
    made.push(3, *[metric("c", 1, 60, **each) for each in labels], of=facts("shop", "bob"))
    return made


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("app", [("shop", "bob", 5, 1), ("shop", "alice", 2, 1), ("cart", "alice", 1, 1)]),
        ("principal", [("bob", "", 5, 1), ("alice", "", 3, 2)]),
        ("software", [("java", "", 6, 2), ("rust", "", 2, 1)]),
        ("metric", [("c", "", 7, 0), ("d", "", 1, 0)]),
        ("label", [("topic", "", 7, 0), ("user", "", 5, 0)]),
    ],
)
def test_the_largest_come_first(scene: BudgetScene, by: str, expected: list[tuple[object, ...]]) -> None:
    found = top([scene.folding], by, 10, scene.now_ms)

    assert [(each.name, each.principal, each.series, each.clients) for each in found] == expected


def test_a_metric_has_its_widest_label_and_an_example(scene: BudgetScene) -> None:
    [first] = top([scene.folding], "metric", 1, scene.now_ms)

    assert (first.share, first.label, first.values, first.example) == (7 / 8, "topic", 7, "topic=t4,user=x")


def test_clients_that_have_ended_do_not_count(scene: BudgetScene) -> None:
    scene.push(3, at=400, of=facts("shop", "bob"))

    for _ in range(3):  # the streams of live clients are looked at in turns
        scene.folding.sweep(scene.now_ms)

    assert [each.name for each in top([scene.folding], "app", 10, scene.now_ms)] == ["shop"]
    assert [each.name for each in top([scene.folding], "metric", 10, scene.now_ms)] == []


def test_several_engines_are_added(scene: BudgetScene) -> None:
    other = BudgetScene()
    other.push(9, metric("d", 1, 60), metric("e", 1, 60), of=facts("cart"))

    found = top([scene.folding, other.folding], "app", 2, scene.now_ms)

    assert [(each.name, each.principal, each.series, each.share) for each in found] == [
        ("shop", "bob", 5, 0.5),
        ("cart", "alice", 3, 0.3),
    ]


def test_the_fullest_budget_of_each_kind(scene: BudgetScene) -> None:
    found = {each.budget: (each.scope, each.series, each.ratio) for each in usages([scene.folding])}

    assert found == {
        "all": ("", 8, 0.08),
        "principal": ("bob", 5, 0.25),
        "app": ("bob/shop", 5, 0.5),
    }


def test_budgets_without_a_limit_are_not_used() -> None:
    scene = BudgetScene()
    scene.push(1, metric("c", 1, 60))

    assert report([scene.folding], "app", 1, scene.now_ms)["budgets"] == []


def test_new_series_of_the_last_hour() -> None:
    count = SeriesCount()
    count.add(60, hour=1)
    count.add(3, hour=2)
    count.add(1, hour=1)  # a record that is late

    assert count.new_per_hour(2 * HOUR_MS) == 64
    assert count.new_per_hour(2 * HOUR_MS + HOUR_MS // 2) == 34
    assert count.new_per_hour(4 * HOUR_MS) == 0
