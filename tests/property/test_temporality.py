"""Totals under faults: drops, repetitions, late records, restarts, kills, and other streams in between."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.temporality import Limits
from support.delta_clients import A, B, Scene, Store, counter, gauge, point
from support.examples import examples

NAMES = ("c0", "c1", "c2", "c3")
SECONDS = 10
Increments = dict[str, float]


@dataclass
class Written:
    """A record of the log."""

    instance: bytes
    increments: Increments
    second: int
    shift: int
    """How far the client's clock was wrong."""


@dataclass
class Plain:
    """Sums per stream, by plain addition."""

    totals: dict[tuple[bytes, str], float] = field(default_factory=dict)

    def add(self, written: Written) -> None:
        for name, value in written.increments.items():
            key = (written.instance, name)
            self.totals[key] = self.totals.get(key, 0.0) + value


class FaultyDelivery(RuleBasedStateMachine):
    """A log, an engine that reads it, and a store: totals are always the sum of the log's deltas."""

    @initialize(layouts=st.sampled_from([0, 1, 2_048]))
    def begin(self, layouts: int) -> None:
        self.scene = Scene("parsed", limits=Limits(max_layouts=layouts))
        self.store = Store()
        self.log: list[Written] = []
        self.read = 0
        self.second = 0

    @rule(
        instance=st.sampled_from([A, B]),
        increments=st.dictionaries(
            st.sampled_from(NAMES), st.sampled_from([0.0, 1.0, 7.0, 2.0**40]), max_size=4
        ),
        shift=st.sampled_from([0, 0, 0, -3600, 5]),
    )
    def push(self, instance: bytes, increments: Increments, shift: int) -> None:
        self.second += SECONDS
        self.log.append(Written(instance, increments, self.second, shift))

    @rule()
    def lose_increments(self) -> None:
        """A push that the host refused: its time passes."""
        self.second += SECONDS

    @rule(most=st.integers(1, 5))
    def deliver(self, most: int) -> None:
        for offset in range(self.read, min(self.read + most, len(self.log))):
            self.give(offset)
            self.read = offset + 1

    @rule(back=st.integers(1, 10))
    def deliver_again(self, back: int) -> None:
        for offset in range(max(0, self.read - back), self.read):
            self.give(offset)

    @rule()
    def commit(self) -> None:
        self.store.commit(self.scene.engine.take_changes())

    @rule(back=st.integers(0, 5))
    def kill(self, back: int) -> None:
        """Lose what was not committed, and read again from somewhere before it."""
        self.scene.restart(self.store)
        positions = self.store.positions
        self.read = max(0, min(positions.values(), default=0) - back)
        while self.read < min(positions.values(), default=0):
            self.give(self.read)
            self.read += 1

    def give(self, offset: int) -> None:
        written = self.log[offset]
        time = written.second + written.shift
        metrics = [
            counter(point(value, time - SECONDS, time), name=name)
            for name, value in sorted(written.increments.items())
        ]
        if metrics:
            metrics.append(gauge(1.0, time=time))
        self.scene.push(*metrics, at=written.second, instance=written.instance, offset=offset)

    @invariant()
    def totals_are_the_sum_of_the_log(self) -> None:
        if not hasattr(self, "scene"):
            return
        plain = Plain()
        for written in self.log[: self.read]:
            plain.add(written)
        found = {
            (instance, name): value
            for instance in (A, B)
            for name, value in self.scene.totals(instance).items()
        }
        assert found == plain.totals
        assert self.scene.engine.counts.lost_records == 0


FaultyDelivery.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestFaultyDelivery = FaultyDelivery.TestCase
