from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred, offload_inline
from odradek.waiting.step_runner import StepRunner


def waited_for(deferred: Deferred[Any]) -> list[object]:
    """The argument of a deferred's callback."""
    received: list[object] = []
    deferred.when_done(received.append)
    return received


def test_the_outcome_reaches_the_callback() -> None:
    deferred = Deferred[str]()
    received = waited_for(deferred)

    deferred.complete("response")

    assert received == ["response"]
    assert deferred.done


def test_a_late_callback_is_called_at_once() -> None:
    deferred = Deferred[str]()
    deferred.complete("response")

    received = waited_for(deferred)

    assert received == ["response"]


def test_the_first_outcome_counts() -> None:
    deferred = Deferred[str]()
    received = waited_for(deferred)
    deferred.complete("first")

    deferred.complete("second")

    assert received == ["first"]


def test_a_function_can_compute_the_outcome() -> None:
    deferred = Deferred[str]()

    deferred.complete_by(lambda: "made")

    assert deferred.outcome == "made"


def test_an_exception_of_the_function_is_the_outcome() -> None:
    deferred = Deferred[str]()
    received = waited_for(deferred)
    bug = ZeroDivisionError()

    deferred.complete_by(raising(bug))

    assert received == [bug]


def test_a_function_is_not_called_after_the_outcome() -> None:
    deferred = Deferred[None]()
    deferred.complete(None)
    calls: list[str] = []

    deferred.complete_by(lambda: calls.append("called"))

    assert calls == []


def test_a_lost_connection_abandons_the_wait_and_is_not_called_back() -> None:
    deferred = Deferred[str]()
    received = waited_for(deferred)
    happened: list[str] = []
    deferred.abandon = lambda: happened.append("abandoned")
    deferred.gone = lambda: happened.append("gone")

    deferred.lost()

    deferred.complete("late")
    assert happened == ["abandoned", "gone"]
    assert received == []


def test_a_connection_lost_after_the_outcome_abandons_nothing() -> None:
    deferred = Deferred[str]()
    happened: list[str] = []
    deferred.abandon = lambda: happened.append("abandoned")
    deferred.gone = lambda: happened.append("gone")
    deferred.complete("response")

    deferred.lost()

    assert happened == []


def test_a_connection_can_be_lost_without_anything_to_abandon() -> None:
    deferred = Deferred[str]()

    deferred.lost()

    assert not deferred.done


@pytest.mark.parametrize("early", [True, False])
def test_each_step_gets_the_result_of_the_previous_one(early: bool) -> None:
    deferred = Deferred[int]()
    if early:
        deferred.complete(1)

    received = waited_for(deferred.then(lambda number: number + 1).then(str))
    deferred.complete(1)

    assert received == ["2"]


def test_an_exception_skips_the_steps() -> None:
    deferred = Deferred[int]()
    calls: list[int] = []
    received = waited_for(deferred.then(calls.append))
    bug = ZeroDivisionError()

    deferred.complete(bug)

    assert (received, calls) == ([bug], [])


def test_an_exception_of_a_step_is_the_outcome() -> None:
    deferred = Deferred[int]()
    bug = ZeroDivisionError()
    received = waited_for(deferred.then(lambda _: raising(bug)()))

    deferred.complete(1)

    assert received == [bug]


def test_a_step_may_wait_again() -> None:
    deferred, second = Deferred[int](), Deferred[int]()
    received = waited_for(deferred.then(lambda _: one_of(second)).then(str))
    deferred.complete(1)
    before = (list(received), deferred.done)

    second.complete(2)

    assert before == ([], False)
    assert received == ["2"]


def test_a_lost_connection_abandons_the_second_wait() -> None:
    deferred, second = Deferred[int](), Deferred[int]()
    happened: list[str] = []
    second.abandon = lambda: happened.append("second")
    deferred.gone = lambda: happened.append("gone")
    deferred.then(lambda _: one_of(second))
    deferred.complete(1)

    deferred.lost()

    assert happened == ["second", "gone"]


def test_steps_run_after_the_connection_is_lost_and_the_finish_does_not() -> None:
    deferred = Deferred[int]()
    calls: list[object] = []
    deferred.then(calls.append)
    deferred.finish = lambda _: calls.append("finish")
    deferred.lost()

    deferred.complete(1)

    assert calls == [1]


@pytest.mark.parametrize("early", [True, False])
def test_the_finish_computes_the_argument_of_the_callback(early: bool) -> None:
    deferred = Deferred[Any]()
    bug = ZeroDivisionError()
    if early:
        deferred.complete(bug)

    deferred.finish = lambda outcome: ("finished", outcome)
    received = waited_for(deferred)
    deferred.complete(bug)

    assert received == [("finished", bug)]


@pytest.mark.parametrize("end", [lambda deferred: deferred.complete("response"), Deferred.lost])
def test_a_finished_deferred_holds_no_references(end: Callable[[Deferred[str]], None]) -> None:
    class Wait:
        """Holds its deferred, and is held by it."""

        def __init__(self) -> None:
            self.deferred = Deferred[str]()
            self.deferred.abandon = self.deferred.hurry = self.deferred.gone = self.stop
            self.deferred.finish = self.deferred.callback = lambda _: self.stop()

        def stop(self) -> None:
            """Do nothing."""

    wait = Wait()
    alive = weakref.ref(wait)
    gc.disable()

    end(wait.deferred)
    del wait

    gc.enable()
    assert alive() is None


def test_failed_work_calls_back_with_its_exception() -> None:
    bug = ZeroDivisionError()
    received: list[object] = []

    offload_inline(raising(bug), received.append)

    assert received == [bug]


def raising(error: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def one_of(answer: int | Deferred[int]) -> int | Deferred[int]:
    """The result of a step that may wait again."""
    return answer


class Request:
    """What the frames of a failure hold."""


def failing(request: Request) -> Any:
    raise ValueError(type(request).__name__)


class Wait:
    """What waits for an answer holds the deferred, and the frames of its error hold what waits."""

    def __init__(self, request: Request, outcomes: Callable[[object], None] | None) -> None:
        self.request = request
        self.deferred = Deferred[Any]()
        if outcomes is None:
            self.deferred.lost()
        else:
            self.deferred.when_done(outcomes)

    def fail(self, _: object = None) -> Any:
        return failing(self.request)

    def work(self) -> None:
        self.deferred.complete_by(self.fail)

    def step(self) -> None:
        self.deferred.then(self.fail).complete(None)

    def second_step(self) -> None:
        second = Deferred[Any]()
        self.deferred.then(lambda _: second).then(self.fail).complete(None)
        second.complete(1)

    def inline(self) -> None:
        offload_inline(self.fail, self.deferred.complete)

    def steps(self) -> Any:
        yield lambda: None
        self.fail()

    def run_in_steps(self) -> None:
        clock = MockClock()
        runner = StepRunner(clock.timer, clock)
        self.deferred.then(lambda _: runner.answer(self.steps())).complete(None)


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("fail", [Wait.work, Wait.step, Wait.second_step, Wait.inline, Wait.run_in_steps])
def test_a_failure_is_freed_as_soon_as_it_is_answered(fail: Callable[[Wait], None], is_lost: bool) -> None:
    names: list[str] = []
    request = Request()
    alive = weakref.ref(request)
    wait = Wait(request, None if is_lost else lambda error: names.append(type(error).__name__))

    gc.disable()
    try:
        fail(wait)
        del wait, request
        freed = alive() is None
    finally:
        gc.enable()

    assert freed
    assert names == ([] if is_lost else ["ValueError"])
