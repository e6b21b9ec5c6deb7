"""The scale-up that ``python -m bench.workers`` computes."""

from __future__ import annotations

import math

import pytest

from bench.workers import ONE, TWO, Window, scale_up


def window(per_s: float, own_cores: float, other_cores: float) -> Window:
    return Window(per_s=per_s, cpu_us=1.0, own_cores=own_cores, other_cores=other_cores)


def test_the_share_of_the_load_is_taken_away_from_the_cores() -> None:
    one = [window(1_000, 0.9, 0.4)] * 3

    assert scale_up({ONE: one, TWO: [window(1_500, 1.4, 0.5)]}, ONE, TWO) == pytest.approx(1.8)
    assert scale_up({ONE: one, TWO: [window(1_000, 0.9, 0.5)]}, ONE, TWO) == pytest.approx(1.2)


def test_a_worker_that_waits_is_no_measure() -> None:
    two = [window(1_500, 1.4, 0.5)]

    assert math.isnan(scale_up({ONE: [window(1_000, 0.5, 0.4)], TWO: two}, ONE, TWO))
    assert math.isnan(scale_up({TWO: two}, ONE, TWO))
