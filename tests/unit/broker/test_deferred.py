from __future__ import annotations

from odradek.broker.dispatch.deferred import Deferred


def test_the_response_reaches_its_waiter() -> None:
    deferred = Deferred()
    received: list[object] = []
    deferred.when_done(received.append)

    deferred.complete("response")

    assert received == ["response"]
    assert deferred.done


def test_a_response_that_already_exists_is_delivered_at_once() -> None:
    deferred = Deferred()
    received: list[object] = []
    deferred.complete("response")

    deferred.when_done(received.append)

    assert received == ["response"]


def test_the_first_response_counts() -> None:
    deferred = Deferred()
    received: list[object] = []
    deferred.when_done(received.append)
    deferred.complete("first")

    deferred.complete("second")

    assert received == ["first"]
    assert deferred.response == "first"


def test_a_response_can_be_computed_by_a_function() -> None:
    deferred = Deferred()

    deferred.complete_by(lambda: "made")

    assert deferred.response == "made"


def test_an_exception_of_the_function_is_the_response_and_affects_no_other() -> None:
    deferred = Deferred()
    received: list[object] = []
    deferred.when_done(received.append)
    bug = ZeroDivisionError()

    def fail() -> object:
        raise bug

    deferred.complete_by(fail)

    assert received == [bug]


def test_the_function_is_not_called_after_a_response() -> None:
    deferred = Deferred()
    deferred.complete("first")
    calls: list[str] = []

    deferred.complete_by(lambda: calls.append("called"))

    assert calls == []


def test_a_lost_connection_abandons_the_work_and_gets_no_response() -> None:
    deferred = Deferred()
    received: list[object] = []
    abandoned: list[str] = []
    deferred.abandon = lambda: abandoned.append("abandoned")
    deferred.when_done(received.append)

    deferred.lost()

    deferred.complete("late")
    assert abandoned == ["abandoned"]
    assert received == []


def test_a_connection_lost_after_the_answer_abandons_nothing() -> None:
    deferred = Deferred()
    abandoned: list[str] = []
    deferred.abandon = lambda: abandoned.append("abandoned")
    deferred.complete("response")

    deferred.lost()

    assert abandoned == []


def test_a_connection_can_be_lost_without_anything_to_abandon() -> None:
    deferred = Deferred()

    deferred.lost()

    assert not deferred.done
