"""Long work runs in turns: a millisecond of the event loop for upkeep, and one for requests."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Generator
from itertools import pairwise
from typing import Any

import pytest

from odradek.bounds.large_list import FREED_TOGETHER, MANY_ELEMENTS
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.waiting.step_runner import BETWEEN_TURNS_MS, CHECK_MS, StepRunner
from odradek.waiting.steps import Pause, Steps
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.ticking_clock import TickingClock

STEPS_IN_TURN = 3
"""The third step, of 0.4 ms each, begins in the turn of a millisecond and ends after it."""


class SlowClock(MockClock):
    """A clock that advances 0.4 ms at each reading."""

    looks_ns = 0

    def monotonic_ns(self) -> int:
        self.looks_ns += 400_000
        return self.looks_ns


def counting(seen: list[str], name: str, pieces: int) -> Generator[None, None, None]:
    for number in range(pieces):
        seen.append(f"{name}{number}")
        yield None


def costly(clock: TickingClock, seen: list[str], name: str) -> Generator[None, None, None]:
    """Steps of 0.35 ms: two of them take longer than a turn and a slice."""
    for _ in range(100):
        clock.looks_ns += 300_000
        seen.append(name)
        yield


def test_a_turn_ends_after_a_millisecond() -> None:
    clock, seen = SlowClock(), list[str]()
    runner = StepRunner(clock.timer, clock)
    runner.run(counting(seen, "a", 100))

    clock.timer.run_due(clock.monotonic_ms())

    assert len(seen) == STEPS_IN_TURN


def test_the_next_turn_starts_after_a_pause() -> None:
    clock, seen = SlowClock(), list[str]()
    runner = StepRunner(clock.timer, clock)
    runner.run(counting(seen, "a", 100))
    clock.advance(0)

    clock.advance(BETWEEN_TURNS_MS)

    assert len(seen) == 2 * STEPS_IN_TURN


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


def requests_of(clock: MockClock) -> StepRunner:
    return StepRunner.of_requests(clock.timer, clock, turn_us=500)


def answering(seen: list[str], name: str, pieces: int) -> Generator[None, None, str]:
    yield from counting(seen, name, pieces)
    return f"{name} is done"


def test_a_short_request_is_answered_at_once() -> None:
    clock, seen = TickingClock(), list[str]()
    runner = requests_of(clock)

    assert runner.answer(answering(seen, "a", 5)) == "a is done"
    assert not runner.tasks
    assert clock.timer.next_deadline_ms() is None


class Request:
    """A request that a weak reference can follow."""


def refused_later(request: Request) -> Generator[None, None, Request]:
    for _ in range(35):
        yield
    raise ApiError(ErrorCode.POLICY_VIOLATION, "too much")
    return request


def test_a_long_request_that_is_refused_is_freed_at_once() -> None:
    clock, request = TickingClock(), Request()
    runner, alive = requests_of(clock), weakref.ref(request)
    deferred = runner.answer(refused_later(request))
    assert isinstance(deferred, Deferred)
    del request
    gc.disable()
    try:
        while not deferred.done:
            clock.one_turn()
        is_freed = alive() is None
    finally:
        gc.enable()

    assert is_freed
    assert isinstance(deferred.outcome, ApiError)


def test_a_large_list_is_freed_in_pieces_between_the_tasks() -> None:
    clock, seen = TickingClock(), list[str]()
    runner = requests_of(clock)
    elements = runner.large_list()
    elements += [Request() for _ in range(FREED_TOGETHER * 12)]
    alive = [weakref.ref(element) for element in elements]
    deferred = runner.answer(answering(seen, "a", 40))
    assert isinstance(deferred, Deferred)
    seen.clear()

    del elements
    left, work = [len(alive)], [0]
    while not deferred.done:
        clock.one_turn()
        left.append(sum(each() is not None for each in alive))
        work.append(len(seen) - sum(work))

    freed = [before - after for before, after in pairwise(left)]
    assert max(freed) <= FREED_TOGETHER * 6
    assert freed.count(0) == len(freed) - 2
    assert min(work[1:3]) >= 4
    assert left[-1] == 0


def test_a_list_that_is_discarded_between_the_turns_is_freed_soon() -> None:
    clock = MockClock()
    runner = requests_of(clock)
    elements = runner.large_list()
    elements += [Request() for _ in range(MANY_ELEMENTS + 1)]
    first = weakref.ref(elements[0])

    del elements
    waiting = first() is not None
    clock.advance(CHECK_MS)

    assert waiting
    assert first() is None


def test_a_list_with_few_elements_is_freed_at_once() -> None:
    clock = MockClock()
    elements = requests_of(clock).large_list()
    elements += [Request() for _ in range(MANY_ELEMENTS)]
    first = weakref.ref(elements[0])

    del elements

    assert first() is None


def test_a_long_request_takes_one_millisecond_of_each_turn() -> None:
    clock, seen = TickingClock(), list[str]()
    runner = requests_of(clock)
    deferred = runner.answer(answering(seen, "a", 35))
    assert isinstance(deferred, Deferred)

    pieces = [len(seen)]
    while not deferred.done:
        clock.one_turn()
        pieces.append(len(seen) - sum(pieces))

    assert max(pieces) == 10
    assert sum(pieces) == 35
    assert deferred.outcome == "a is done"
    assert (runner.tasks, runner.awake, runner.deferred) == (set(), False, 1)


def test_an_error_in_the_first_slice_is_raised() -> None:
    clock = TickingClock()
    runner = requests_of(clock)

    def failing() -> Generator[None, None, str]:
        yield
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        runner.answer(failing())
    assert not runner.tasks


def test_a_later_error_is_the_outcome() -> None:
    clock = TickingClock()
    runner = requests_of(clock)

    def failing() -> Generator[None, None, str]:
        yield from counting([], "a", 20)
        raise OSError(5, "Input/output error")

    deferred = runner.answer(failing())
    assert isinstance(deferred, Deferred)
    clock.advance(0)

    assert isinstance(deferred.outcome, OSError)
    assert not runner.tasks


def test_requests_take_equal_time_whatever_their_steps_cost() -> None:
    clock, seen = TickingClock(), list[str]()
    runner = requests_of(clock)

    def expensive() -> Generator[None, None, None]:
        for _ in range(100):
            clock.looks_ns += 150_000
            seen.append("expensive")
            yield

    runner.answer(expensive())
    runner.answer(answering(seen, "cheap", 1_000))
    seen.clear()

    for _ in range(10):
        clock.one_turn()

    cheap = sum(name.startswith("cheap") for name in seen)
    expensive_ns, cheap_ns = (len(seen) - cheap) * 250_000, cheap * 100_000
    assert 0.5 < cheap_ns / expensive_ns < 2


def test_new_requests_take_one_step_each_once_a_turn_is_used_up() -> None:
    clock, seen = TickingClock(), list[str]()
    runner = requests_of(clock)
    runner.answer(answering(seen, "first", 1_000))
    clock.one_turn()
    seen.clear()

    for number in range(50):
        runner.answer(answering(seen, f"{number}-", 1_000))

    assert len(seen) <= 10 + 50
    assert max(Counter(name.split("-")[0] for name in seen[10:]).values()) == 1
    clock.one_turn()
    assert any(name.startswith("first") for name in seen)


def test_a_short_request_does_not_wait_for_long_ones() -> None:
    clock = TickingClock()
    runner = requests_of(clock)
    runner.answer(answering([], "long", 1_000))
    clock.one_turn()

    assert runner.answer(answering([], "short", 1)) == "short is done"


def test_a_request_whose_connection_is_lost_is_completed() -> None:
    clock, seen = TickingClock(), list[str]()
    runner = requests_of(clock)
    deferred = runner.answer(answering(seen, "a", 100))
    assert isinstance(deferred, Deferred)

    deferred.lost()
    clock.advance(0)

    assert len(seen) == 100
    assert not runner.tasks


def test_a_droppable_request_ends_with_its_connection() -> None:
    clock, seen = TickingClock(), list[str]()
    runner = requests_of(clock)
    steps = answering(seen, "a", 100)
    deferred = runner.answer(steps, droppable=True)
    assert isinstance(deferred, Deferred)
    before = len(seen)

    deferred.lost()
    clock.advance(0)

    assert len(seen) == before
    assert next(steps, None) is None
    assert not runner.tasks


def test_nothing_holds_a_dropped_request() -> None:
    clock = TickingClock()
    runner = requests_of(clock)
    deferred = runner.answer(answering([], "a", 100), droppable=True)
    assert isinstance(deferred, Deferred)
    steps = weakref.ref(next(iter(runner.tasks)).steps)
    gc.disable()
    try:
        deferred.lost()
        del deferred
        clock.advance(0)

        assert steps() is None
    finally:
        gc.enable()


def test_the_time_of_each_slice_is_measured() -> None:
    clock, measured = TickingClock(), list[int]()
    runner = requests_of(clock)
    first = Deferred[None]()
    answer = first.then(lambda _: runner.answer(answering([], "a", 30)))

    def measure(work: Callable[[], Any]) -> Any:
        started_ns = clock.looks_ns
        try:
            return work()
        finally:
            measured.append(clock.looks_ns - started_ns)

    answer.around = measure
    first.complete(None)
    clock.advance(0)

    assert answer.outcome == "a is done"
    assert sum(measured) >= 20 * clock.tick_ns
