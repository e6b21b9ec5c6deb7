"""Rules about the times of pushes."""

from __future__ import annotations

import pytest

from odradek.wire.error_code import ErrorCode
from support.conversations import Conversation


@pytest.mark.parametrize(("at", "verdict"), [(0.4, "wrong"), (0.5, "ok"), (1.5, "ok"), (1.6, "wrong")])
def test_the_first_push_comes_half_to_one_and_a_half_intervals_after_the_handshake(
    at: float, verdict: str
) -> None:
    assert Conversation().handshake(0).push(at).verdict("first push") == (
        verdict,
        f"{at:.2f} of the interval after the handshake",
    )


def test_a_terminating_push_may_be_the_first_at_any_time() -> None:
    talk = Conversation().handshake(0).push(0.1, terminating=True)

    assert talk.rule("first push").verdict == "unseen"


@pytest.mark.parametrize(("at", "verdict"), [(0.489, "wrong"), (0.49, "ok"), (1.53, "ok"), (1.531, "wrong")])
def test_delays_of_a_busy_machine_are_tolerated(at: float, verdict: str) -> None:
    assert Conversation().handshake(0).push(at).rule("first push").verdict == verdict


def test_an_interval_that_is_too_short_leaves_the_rules_unseen() -> None:
    talk = Conversation(interval_ms=100).handshake(0).push(9).push(10)

    expected = ("unseen", "an interval of 100 ms is too short to check: use at least 1000 ms")
    assert talk.verdict("first push") == expected
    assert talk.verdict("interval") == expected


def test_a_manual_clock_leaves_the_rules_unseen() -> None:
    talk = Conversation().handshake(0).push(0).push(0)

    expected = ("unseen", "a test controlled the host's clock")
    assert talk.verdict("first push", timed=False) == expected
    assert talk.verdict("interval", timed=False) == expected


@pytest.mark.parametrize(
    ("times", "verdict"),
    [((1, 2, 3), "ok"), ((1, 1.9, 3), "wrong"), ((1, 2, 3, 5), "ok"), ((1, 3, 5), "wrong")],
)
def test_pushes_are_an_interval_apart_and_some_may_be_late(times: tuple[float, ...], verdict: str) -> None:
    talk = Conversation().handshake(0)
    for at in times:
        talk.push(at)

    assert talk.rule("interval").verdict == verdict


def test_the_first_push_after_a_handshake_or_a_refusal_is_no_gap() -> None:
    talk = Conversation().handshake(0).push(1).handshake(1.1).push(1.2)
    talk.push(1.3, error=ErrorCode.THROTTLING_QUOTA_EXCEEDED).push(2.3)

    assert talk.verdict("interval") == ("wrong", "0.10 to 0.10 of the interval in 1 gaps")


def test_the_last_push_is_marked() -> None:
    talk = Conversation().handshake(0).push(1)

    assert talk.rule("terminating push").verdict == "unseen"
    assert talk.push(1.5, terminating=True).rule("terminating push").verdict == "ok"
    assert talk.push(2).verdict("terminating push") == ("wrong", "1 pushes after the terminating push")
