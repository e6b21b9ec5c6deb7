"""Long work runs in turns of at most two milliseconds of the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek.log.steps import Pause, Steps
from odradek.server.upkeep.step_runner import BETWEEN_TURNS_MS, TURN_NS, StepRunner
from odradek.testing.clock import MockClock


class SlowClock(MockClock):
    """A clock that advances 0.4 ms at each reading."""

    looks_ns = 0

    def monotonic_ns(self) -> int:
        self.looks_ns += 400_000
        return self.looks_ns


def counting(seen: list[str], name: str, pieces: int) -> Steps:
    for number in range(pieces):
        seen.append(f"{name}{number}")
        yield None


def test_a_turn_ends_after_two_milliseconds() -> None:
    clock, seen = SlowClock(), list[str]()
    runner = StepRunner(clock.timer, clock)
    runner.run(counting(seen, "a", 100))

    clock.timer.run_due(clock.monotonic_ms())

    assert len(seen) == TURN_NS // 400_000


def test_the_next_turn_starts_after_a_pause() -> None:
    clock, seen = SlowClock(), list[str]()
    runner = StepRunner(clock.timer, clock)
    runner.run(counting(seen, "a", 100))
    clock.advance(0)

    clock.advance(BETWEEN_TURNS_MS)

    assert len(seen) == 2 * TURN_NS // 400_000


def test_tasks_take_turns() -> None:
    clock, seen = MockClock(), list[str]()
    runner = StepRunner(clock.timer, clock)
    runner.run(counting(seen, "a", 2))
    runner.run(counting(seen, "b", 2))

    clock.advance(0)

    assert seen == ["a0", "b0", "a1", "b1"]
    assert not runner.tasks


def test_a_pause_lets_other_tasks_run() -> None:
    clock, seen = MockClock(), list[str]()
    runner = StepRunner(clock.timer, clock)

    def pausing() -> Steps:
        yield Pause(50)
        seen.append("after the pause")

    runner.run(pausing())
    runner.run(counting(seen, "b", 1))

    clock.advance(49)
    before = list(seen)
    clock.advance(1)

    assert (before, seen) == (["b0"], ["b0", "after the pause"])


def test_blocking_steps_run_elsewhere_and_return_their_result() -> None:
    clock = MockClock()
    waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
    runner = StepRunner(clock.timer, clock, lambda work, done: waiting.append((work, done)))
    seen: list[Any] = []

    def blocking() -> Steps:
        seen.append((yield lambda: 42))

    runner.run(blocking())
    clock.advance(0)
    [(work, done)] = waiting
    done(work())
    clock.advance(0)

    assert seen == [42]


@pytest.mark.parametrize("where", ["offloaded", "inside"])
def test_an_exception_is_reported(where: str) -> None:
    clock, ended = MockClock(), list[Exception | None]()
    runner = StepRunner(clock.timer, clock)

    def failing() -> Steps:
        def work() -> None:
            raise OSError(5, "Input/output error")

        if where == "offloaded":
            yield work
        else:
            work()
        yield None

    runner.run(failing(), ended.append)

    clock.advance(0)

    assert [type(error) for error in ended] == [OSError]


def test_stopping_closes_unfinished_tasks() -> None:
    clock, seen = SlowClock(), list[str]()
    runner = StepRunner(clock.timer, clock)

    def careful() -> Steps:
        try:
            while True:
                yield None
        finally:
            seen.append("closed")

    runner.run(careful())
    clock.advance(0)

    runner.stop()
    clock.advance(1_000)

    assert seen == ["closed"]


def test_work_that_cannot_be_offloaded_does_not_stop_the_others() -> None:
    clock, seen = MockClock(), list[str]()

    def refusing(_work: Callable[[], Any], _done: Callable[[Any], None]) -> None:
        raise RuntimeError("cannot start a thread")

    runner = StepRunner(clock.timer, clock, refusing)

    def blocking() -> Steps:
        yield lambda: None

    runner.run(blocking())
    runner.run(counting(seen, "a", 2))
    with pytest.raises(RuntimeError):
        clock.advance(0)

    clock.advance(BETWEEN_TURNS_MS)

    assert seen == ["a0", "a1"]
