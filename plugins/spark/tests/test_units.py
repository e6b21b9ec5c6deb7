"""Values in units that people read."""

from __future__ import annotations

import math

import pytest

from odradek_tables.query.units import duration, number, said


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.25, "ms", "0.25 ms"),
        (999.0, "ms", "999 ms"),
        (6_200.0, "ms", "6.2 s"),
        (120_000.0, "ms", "120 s"),
        (300_000.0, "ms", "5 min"),
        (7_200_000.0, "ms", "2 h"),
        (1_500.0, "ns", "1.5 us"),
        (512.0, "bytes", "512 B"),
        (33_554_432.0, "bytes", "32 MiB"),
        (866_550.0, "bytes per s", "846 KiB/s"),
        (0.0012, "per s", "4.32/h"),
        (0.5, "per s", "30/min"),
        (1_017.4, "per s", "1,017/s"),
        (4_000.0, "ms per min", "4 s/min"),
        (60_000.0, "ms in 10 minutes", "60 s in 10 minutes"),
        (0.123, "ratio", "12.3%"),
        (0.01, "share of the records sent", "1% of the records sent"),
        (1_234_567.0, "", "1,234,567"),
        (3.0, "rebalances in 10 minutes", "3 rebalances in 10 minutes"),
        (2.0, "furlong", "2 furlong"),
        (0.0, "ms", "0 ms"),
        (math.nan, "ms", "nan ms"),
        (math.inf, "ms", "inf ms"),
        (None, "ms", "-"),
    ],
)
def test_a_value_is_told_in_a_unit_for_people(value: float | None, unit: str, expected: str) -> None:
    assert said(value, unit) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, "0"), (1e-7, "1e-07"), (0.5, "0.5"), (99.96, "100"), (-1_500.2, "-1,500")]
)
def test_numbers_have_three_digits_or_commas(value: float, expected: str) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (59.6, "1 min"),
        (180, "3 min"),
        (870, "14 min 30 s"),
        (4_800, "1 h 20 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected
