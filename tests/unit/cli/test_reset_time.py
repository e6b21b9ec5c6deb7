from __future__ import annotations

import click
import pytest

from odradek.cli.reset_time import at_datetime_ms, duration_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T00:00:01.500Z", 1500),
        ("1970-01-01T01:00:01+01:00", 1000),
        ("1970-01-01T00:00", 0),
        ("2023-11-14T22:13:20.000", 1_700_000_000_000),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, expected: int) -> None:
    assert at_datetime_ms(text) == expected


@pytest.mark.parametrize("text", ["", "1970-01-01", "T", "1970-01-01T25:00:00", "now", "1700000000000"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="option --to-datetime: expected YYYY-MM-DDThh:mm:ss"):
        at_datetime_ms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H", 3_600_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt90m", 5_400_000),
        ("PT-1H30M", -1_800_000),
        ("-PT1S", -1000),
        ("PT0,25S", 250),
    ],
)
def test_a_duration_is_parsed_as_in_java(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1H", "P1H", "PT1.5H", "PT1H ", "P1X", "P٣D"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="option --by-duration: expected PnDTnHnMnS"):
        duration_ms(text)
