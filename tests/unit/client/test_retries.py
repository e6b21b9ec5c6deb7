from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from odradek.client.errors import RequestFailed
from odradek.client.retries import Retries, is_temporary, values
from odradek.wire.error_code import ErrorCode

LOADING = RequestFailed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
GONE = RequestFailed(ErrorCode.GROUP_ID_NOT_FOUND)


class Watch:
    """A clock that only pauses advance."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    def retries(self, timeout_s: float) -> Retries:
        return Retries(timeout_s, lambda: self.now_s, self.sleep)


def failing(*errors: RequestFailed) -> Callable[[], str]:
    """An attempt that is refused several times, then succeeds."""
    left = list(errors)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return attempt


def test_a_successful_request_is_sent_once() -> None:
    watch = Watch()

    value = watch.retries(1).settle(failing())

    assert (value, watch.pauses) == ("done", [])


def test_a_retriable_refusal_is_retried_after_growing_pauses() -> None:
    watch = Watch()

    value = watch.retries(30).settle(failing(*[LOADING] * 6))

    assert value == "done"
    assert watch.pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_a_final_refusal_is_reported_at_once() -> None:
    watch = Watch()

    with pytest.raises(RequestFailed) as refused:
        watch.retries(30).settle(failing(GONE))

    assert refused.value is GONE
    assert watch.pauses == []


def test_no_request_is_sent_after_the_deadline() -> None:
    watch = Watch()

    with pytest.raises(RequestFailed) as refused:
        watch.retries(0.5).settle(failing(*[LOADING] * 100))

    assert refused.value is LOADING
    assert watch.pauses == [0.1, 0.2]


def test_the_brokers_time_counts_towards_the_deadline() -> None:
    watch = Watch()

    def slow() -> str:
        watch.now_s += 10
        raise LOADING

    with pytest.raises(RequestFailed):
        watch.retries(10).settle(slow)

    assert watch.pauses == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.NOT_CONTROLLER, True),
        (ErrorCode.NOT_COORDINATOR, True),
        (ErrorCode.UNSTABLE_OFFSET_COMMIT, True),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (ErrorCode.ELECTION_NOT_NEEDED, False),
        (ErrorCode.TOPIC_ALREADY_EXISTS, False),
    ],
)
def test_only_temporary_errors_are_retried(code: ErrorCode, expected: bool) -> None:
    assert is_temporary(RequestFailed(code)) is expected


def test_only_items_with_a_retriable_refusal_are_sent_again() -> None:
    watch = Watch()
    asked: list[list[str]] = []

    def attempt(items: list[str]) -> Mapping[str, int | RequestFailed]:
        asked.append(items)
        answers: dict[str, int | RequestFailed] = {"a": 1, "b": LOADING if len(asked) < 3 else 2, "c": GONE}
        return {item: answers[item] for item in items}

    outcomes = watch.retries(30).settle_each(["c", "b", "a"], attempt)

    assert list(outcomes.items()) == [("c", GONE), ("b", 2), ("a", 1)]
    assert asked == [["c", "b", "a"], ["b"], ["b"]]


def test_a_refusal_of_the_whole_attempt_applies_to_every_item() -> None:
    watch = Watch()

    def attempt(items: list[str]) -> Mapping[str, int | RequestFailed]:
        raise LOADING

    outcomes = watch.retries(0.2).settle_each(["a", "b"], attempt)

    assert outcomes == {"a": LOADING, "b": LOADING}
    assert watch.pauses == [0.1]


def test_an_item_missing_from_the_answer_is_refused() -> None:
    outcomes = Watch().retries(1).settle_each(["a"], lambda items: {"b": 1})

    outcome = outcomes["a"]
    assert isinstance(outcome, RequestFailed)
    assert str(outcome) == "a: UNKNOWN_SERVER_ERROR: missing in the broker's response"


def test_an_empty_request_is_not_sent() -> None:
    def attempt(items: list[str]) -> Mapping[str, int | RequestFailed]:
        raise AssertionError(items)

    assert Watch().retries(1).settle_each([], attempt) == {}


def test_values_are_all_or_the_first_refusal() -> None:
    outcomes: dict[str, int | RequestFailed] = {"a": 1, "b": GONE, "c": LOADING}

    with pytest.raises(RequestFailed) as refused:
        values(outcomes)

    assert refused.value is GONE
    assert values({"a": 1}) == {"a": 1}
