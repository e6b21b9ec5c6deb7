"""Memory goes back to the system when much of it stays unused, and not while it is needed again."""

from __future__ import annotations

import pytest

from odradek.process.freed_memory import LOOK_MS, MUCH_BYTES, FreedMemory
from odradek.testing.clock import MockClock

BASE = 1_000_000
MUCH = BASE + MUCH_BYTES


def looked(*spare: int, left: int = BASE) -> int:
    """How often memory was given back, with so much of it unused at each look, and ``left`` afterwards."""
    clock = MockClock()
    found = list(spare)
    times: list[int] = []

    def give_back() -> None:
        times.append(1)
        found.insert(0, left)

    FreedMemory(lambda: found.pop(0), clock, clock.timer, give_back)
    for _ in spare[1:]:
        clock.advance(LOOK_MS)
    return len(times)


@pytest.mark.parametrize(
    ("spare", "times"),
    [
        ((BASE, MUCH, BASE), 0),
        ((BASE, MUCH, MUCH), 1),
        ((BASE, MUCH, MUCH, BASE, BASE), 1),
        ((BASE, MUCH, BASE, MUCH, BASE, MUCH), 0),
        ((BASE, MUCH, MUCH, MUCH, MUCH), 2),
        ((BASE, MUCH - 1, MUCH - 1, MUCH - 1), 0),
        ((MUCH, BASE, MUCH, MUCH), 1),
    ],
)
def test_it_is_given_back_when_much_stays_unused(spare: tuple[int, ...], times: int) -> None:
    assert looked(*spare) == times


def test_what_cannot_be_given_back_is_not_tried_again() -> None:
    assert looked(BASE, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, left=MUCH) == 1
