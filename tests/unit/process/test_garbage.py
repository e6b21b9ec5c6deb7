"""Full collections of garbage wait for a moment without long requests."""

from __future__ import annotations

from odradek.process.garbage import CHECK_MS, DUE, OVERDUE, collect_when_calm
from odradek.testing.clock import MockClock
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import Pause, Steps

LONG_MS = 60_000


class Collector:
    """Counts full collections; a full one is due after a number of others."""

    def __init__(self, younger: int) -> None:
        self.younger = younger
        self.full = 0

    def collections(self) -> int:
        return self.younger

    def collect(self) -> None:
        self.younger = 0
        self.full += 1


def long_request() -> Steps:
    yield Pause(LONG_MS)


def watched(collector: Collector, *, busy: bool) -> MockClock:
    """A host whose garbage is watched."""
    clock = MockClock()
    requests = StepRunner.of_requests(clock.timer, clock, turn_us=1_000)
    if busy:
        requests.run(long_request())
        clock.advance(0)
    collect_when_calm(
        lambda: not (requests.tasks or requests.discarded),
        clock,
        clock.timer,
        collector.collections,
        collector.collect,
    )
    return clock


def test_a_due_collection_is_made_in_a_calm_moment() -> None:
    collector = Collector(DUE - 1)
    clock = watched(collector, busy=False)
    before = collector.full

    collector.younger = DUE
    clock.advance(CHECK_MS)

    assert (before, collector.full) == (0, 1)


def test_it_waits_for_the_end_of_a_long_request() -> None:
    collector = Collector(OVERDUE - 1)
    clock = watched(collector, busy=True)

    clock.advance(LONG_MS - CHECK_MS)
    waiting = collector.full
    clock.advance(2 * CHECK_MS)

    assert (waiting, collector.full) == (0, 1)


def test_it_does_not_wait_for_ever() -> None:
    collector = Collector(OVERDUE)

    watched(collector, busy=True)

    assert collector.full == 1
