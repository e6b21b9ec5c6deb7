"""What viewers share, and what a console keeps for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from odradek_console.engine.subscription_history import KEPT, SubscriptionHistory
from odradek_console.reading.cluster_view import matcher
from odradek_console.web.shared import KEPT_S, SHARE, Shared
from support.console_site import Clock


@dataclass
class Costly:
    """A value that takes some time to make."""

    takes_s: float = 0.0
    clock: Clock = field(default_factory=Clock)
    made: int = 0

    def __post_init__(self) -> None:
        self.shared = Shared[int](self.clock)

    def ask(self, origin: object = "the same") -> int:
        return self.shared.of(origin, self.make)

    def make(self) -> int:
        self.clock.now_s += self.takes_s
        self.made += 1
        return self.made


def test_viewers_of_the_same_seconds_share_a_value() -> None:
    costly = Costly()

    assert [costly.ask() for _ in range(100)] == 100 * [1]
    costly.clock.now_s += KEPT_S
    assert costly.ask() == 2


def test_a_value_of_another_origin_is_made_at_once() -> None:
    costly = Costly()

    assert [costly.ask("a"), costly.ask("a"), costly.ask("b")] == [1, 1, 2]


def test_a_value_that_takes_long_is_kept_for_long() -> None:
    costly = Costly(takes_s=60)

    for _ in range(1_000):
        costly.ask()
        costly.clock.now_s += 1

    assert costly.made == 2
    assert costly.made * costly.takes_s <= 1_000 / SHARE + 60


def test_a_value_that_fails_is_made_again() -> None:
    costly = Costly()

    def fail() -> int:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        costly.shared.of("the same", fail)
    assert costly.ask() == 1


def row(client_id: str) -> Any:
    return SimpleNamespace(client_id=client_id)


@pytest.mark.parametrize("pattern", [r"(\pL{100}.{100}){2}x1", r"(\pL{100}.{100}", "\\C"])
def test_a_pattern_that_is_too_large_or_wrong_selects_nothing_and_says_nothing(
    pattern: str, capfd: pytest.CaptureFixture[str]
) -> None:
    fits = matcher(f"client_id={pattern}")

    assert not any(fits(row(text)) for text in ("a" * 250, "x1", ""))
    assert capfd.readouterr() == ("", "")


def test_acts_that_no_poll_sees_are_forgotten() -> None:
    history = SubscriptionHistory()
    for number in range(2 * KEPT):
        with history.changed_by(f"watch-{number}", "ann"):
            pass

    history.observe({}, 0)
    history.observe({f"watch-{2 * KEPT - 1}": {"metrics": "*"}, "watch-0": {"metrics": "*"}}, 1)

    assert len(history.users) < KEPT
    assert {each.name: each.user for each in history.changes()} == {
        f"watch-{2 * KEPT - 1}": "ann",
        "watch-0": "",
    }
