"""Budgets of series under any order of clients, faults and restarts: the invariants I1 to I7."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.temporality.budgets.member import facts_of_other
from odradek.temporality.stream_key import Identity, Kind
from support.budget_clients import BudgetScene, facts, gauge, instance, metric
from support.delta_clients import Store
from support.examples import examples

COUNTERS = ("bytes.total", "records.total", "errors.total")
GAUGES = ("size.max", "org.apache.kafka.consumer.fetch.manager.records.lag")
APPS = (facts("shop"), facts("cart"), facts("shop", principal="bob"))
LEVELS: tuple[dict[str, str | int], ...] = (
    {},
    {"topic": "a"},
    {"topic": "b"},
    {"topic": "a", "partition": 0},
    {"topic": "a", "partition": 1},
    {"user": "x"},
)
Push = list[tuple[str, int, float]]
"""Counter, index of its labels, and delta."""
PUSHES = st.lists(
    st.tuples(
        st.sampled_from(COUNTERS), st.integers(0, len(LEVELS) - 1), st.sampled_from([0.0, 1.0, 5.0, 2.0**40])
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda each: each[:2],
)
BUDGETS = st.fixed_dictionaries(
    {
        "series": st.sampled_from([0, 1, 8, 30]),
        "principal_series": st.sampled_from([0, 10]),
        "app_series": st.sampled_from([0, 6]),
        "client_series": st.sampled_from([0, 4]),
        "label_values": st.sampled_from([0, 1]),
    }
)
NAMES = 2 * (len(COUNTERS) + len(GAUGES)) * len({tuple(sorted(each)) for each in LEVELS})
"""The most streams of one ``other``: each name with each set of labels, and gauges as means."""


class Budgets(RuleBasedStateMachine):
    """Clients whose series have budgets, a log, and a store."""

    @initialize(budgets=BUDGETS)
    def begin(self, budgets: dict[str, int]) -> None:
        self.budgets = budgets
        self.scene = BudgetScene(**budgets)
        self.store = Store()
        self.log: list[tuple[int, Push, float, bool]] = []
        self.read = 0
        self.seconds = 60.0
        self.values: dict[tuple[bytes, Identity], float] = {}

    @rule(
        number=st.integers(0, 8), push=PUSHES, wait=st.sampled_from([0, 10, 60, 400]), goodbye=st.booleans()
    )
    def push(self, number: int, push: Push, wait: int, goodbye: bool) -> None:
        self.seconds += wait
        self.log.append((number, push, self.seconds, goodbye and number > 6))
        self.deliver()

    @rule(back=st.integers(1, 5))
    def deliver_again(self, back: int) -> None:
        for offset in range(max(0, self.read - back), self.read):
            self.give(offset)

    @rule()
    def sweep(self) -> None:
        self.scene.folding.sweep(self.scene.now_ms)
        self.scene.folding.refresh(self.scene.now_ms)

    @rule()
    def commit(self) -> None:
        self.scene.commit(self.store)

    @rule()
    def kill(self) -> None:
        """Lose what was not committed."""
        self.scene.restart(self.store)
        self.values.clear()
        self.read = min(self.store.positions.values(), default=0)
        self.deliver()

    def deliver(self) -> None:
        while self.read < len(self.log):
            self.give(self.read)
            self.read += 1

    def give(self, offset: int) -> None:
        number, push, at, goodbye = self.log[offset]
        metrics = [metric(name, value, at, **LEVELS[labels]) for name, labels, value in push]
        metrics += [gauge(name, number, at, topic="a") for name in GAUGES]
        of = APPS[number % len(APPS)]
        self.scene.push(number, *metrics, at=at, of=of, offset=offset, terminating=goodbye)

    @invariant()
    def totals_are_the_sum_of_the_log(self) -> None:
        """I1 and I7: for every counter, over all series."""
        if not hasattr(self, "scene"):
            return
        expected: Counter[str] = Counter()
        for _, push, _, _ in self.log[: self.read]:
            for name, _, value in push:
                expected[name] += value  # type: ignore[assignment]
        assert self.scene.totals() == dict(expected)

    @invariant()
    def live_series_are_within_budget(self) -> None:
        """I2, for all, each principal and each app."""
        if not hasattr(self, "scene"):
            return
        members = self.scene.folding.members.live
        scopes: dict[tuple[str, ...], list[bytes]] = {}
        for instance_id, member in members.items():
            scopes.setdefault(("series",), []).append(instance_id)
            scopes.setdefault(("principal_series", member.facts.principal), []).append(instance_id)
            scopes.setdefault(("app_series", *member.facts[:2]), []).append(instance_id)
        for scope, instances in scopes.items():
            if self.budgets[scope[0]]:
                assert self.scene.live(instances) <= self.budgets[scope[0]] + NAMES, scope

    @invariant()
    def counters_never_decrease(self) -> None:
        """I3."""
        if not hasattr(self, "scene"):
            return
        for instance_id, identity, value in self.scene.shown():
            if identity.kind == Kind.COUNTER:
                assert value >= self.values.get((instance_id, identity), 0.0)
                self.values[instance_id, identity] = value

    @invariant()
    def counts_are_those_of_a_scan(self) -> None:
        if not hasattr(self, "scene"):
            return
        folding = self.scene.folding
        metrics: Counter[str] = Counter()
        for instance_id, member in folding.members.live.items():
            shown = {each.identity for each in self.scene.scene.engine.series(instance_id)}
            keys = self.scene.scene.engine.keys
            counted = [keys.identity(key) for key in member.counted()]
            assert member.live == len(counted)
            # ``other`` may have room for a stream that a client has not sent since.
            if facts_of_other(instance_id) is None:
                assert {each for each in counted if each.kind == Kind.COUNTER} <= shown
            metrics.update(each.name for each in counted)
        assert folding.series.series.series == metrics.total()
        assert sum(count.series for count in folding.series.apps.values()) == metrics.total()
        assert {name: count.series for name, count in folding.series.metrics.items()} == metrics


Budgets.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestBudgets = pytest.mark.ci(Budgets.TestCase)


@settings(max_examples=examples(60), deadline=None)
@given(
    budgets=BUDGETS,
    pushes=st.lists(st.tuples(st.integers(0, 8), PUSHES), max_size=12).flatmap(
        lambda found: st.tuples(st.just(found), st.permutations(found))
    ),
)
def test_the_order_of_arrival_changes_no_total(
    budgets: dict[str, int], pushes: tuple[list[tuple[int, Push]], list[tuple[int, Push]]]
) -> None:
    """I6."""
    found = []

    for order in pushes:
        scene = BudgetScene(**budgets)
        for number, push in order:
            metrics = [metric(name, value, 60, **LEVELS[labels]) for name, labels, value in push]
            scene.push(number, *metrics, of=APPS[number % len(APPS)])
        found.append(scene.totals())

    assert found[0] == found[1]


def test_random_client_ids_stay_within_a_budget() -> None:
    """I5, with fewer clients than the test with a real Prometheus."""
    scene = BudgetScene(series=1_000)

    for number in range(3_000):
        metrics = [metric(name, 1, 60, node_id=number % 7) for name in COUNTERS]
        scene.push(number, *metrics, of=facts(f"app-{number}"))

    assert scene.live() <= 1_000 + len(COUNTERS)
    assert scene.totals() == dict.fromkeys(COUNTERS, 3_000.0)
    assert scene.folding.series.series.series == scene.live()
    assert instance(2_999) not in {found for found, _, _ in scene.shown()}
