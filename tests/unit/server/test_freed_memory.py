"""Memory goes back to the system after many connections have left, and not while they come back."""

from __future__ import annotations

import pytest

from odradek.server.upkeep.freed_memory import LOOK_MS, MANY, FreedMemory
from odradek.testing.clock import MockClock

FLEET = 10_000


def looked(*counts: int) -> int:
    """How often memory was given back, with so many connections at each look."""
    clock = MockClock()
    found = iter(counts)
    times: list[int] = []
    FreedMemory(lambda: next(found), clock, clock.timer, lambda: times.append(1))
    for _ in counts[1:]:
        clock.advance(LOOK_MS)
    return len(times)


@pytest.mark.parametrize(
    ("counts", "times"),
    [
        ((0, FLEET, 0), 0),
        ((0, FLEET, 0, 0), 1),
        ((0, FLEET, 0, 0, 0, 0), 1),
        ((0, FLEET, 0, FLEET, 0, FLEET), 0),
        ((0, FLEET, 0, 0, FLEET, 0, 0), 2),
        ((0, FLEET, FLEET - MANY + 1, FLEET - MANY + 1), 0),
        ((0, FLEET, FLEET - MANY, FLEET - MANY), 1),
        ((0, MANY - 1, 0, 0), 0),
    ],
)
def test_it_is_given_back_once_when_many_have_stayed_away(counts: tuple[int, ...], times: int) -> None:
    assert looked(*counts) == times
