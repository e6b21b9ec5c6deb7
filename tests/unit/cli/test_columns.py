from __future__ import annotations

from odradek.cli.columns import table


def test_a_column_is_as_wide_as_its_widest_value() -> None:
    lines = table([("A", 3), ("LONG", 0), ("B", 1)], [["a", 1, "x"], ["abcd", 12345, "y"]])

    assert lines == ["A    LONG  B", "a    1     x", "abcd 12345 y"]


def test_a_missing_value_is_a_dash_and_an_empty_string_is_not() -> None:
    lines = table([("A", 2), ("B", 2), ("C", 0)], [[None, "", 0]])

    assert lines == ["A  B  C", "-     0"]


def test_a_table_without_rows_has_its_heading() -> None:
    assert table([("A", 3), ("B", 0)], []) == ["A   B"]
