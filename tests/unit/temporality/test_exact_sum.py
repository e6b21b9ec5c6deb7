"""Sums without loss."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from odradek.temporality.exact_sum import added, halves, whole

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)


def test_row_20_a_tenth_a_million_times() -> None:
    total = compensation = 0.0

    for _ in range(1_000_000):
        total, compensation = added(total, compensation, 0.1)

    assert total + compensation == 100_000.0


@given(st.lists(st.integers(-(2**62), 2**62), max_size=50))
def test_integers_are_exact(values: list[int]) -> None:
    total = compensation = 0.0

    for value in values:
        near, rest = halves(value)
        total, compensation = added(total, compensation, near)
        compensation += rest

    exact = sum(values)
    assert whole(total, compensation) == (exact if -(2**63) <= exact < 2**63 else None)


@given(st.lists(finite.map(abs), max_size=100))
def test_sums_of_doubles_are_as_near_as_a_double_can_be(values: list[float]) -> None:
    total = compensation = 0.0

    for value in values:
        total, compensation = added(total, compensation, value)

    exact = math.fsum(values)
    assert abs(Fraction(total + compensation) - Fraction(exact)) <= Fraction(math.ulp(exact))


@given(st.lists(st.sampled_from([1e308, 1.7e308, 1.0]), min_size=30, max_size=60))
def test_a_sum_that_no_double_can_hold_stays_at_the_largest(values: list[float]) -> None:
    for sign in (1, -1):
        total = compensation = 0.0

        shown = []
        for value in [*values, 1.7e308, 1.7e308]:
            total, compensation = added(total, compensation, sign * value)
            shown.append(sign * (total + compensation))

        assert shown == sorted(shown)
        assert shown[-1] == sys.float_info.max
