from __future__ import annotations

from odradek.cli.columns import Table


def test_a_column_is_as_wide_as_its_widest_value() -> None:
    lines = Table([("A", 3), ("LONG", 0), ("B", 1)], [["a", 1, "x"], ["abcd", 12345, "y"]]).lines()

    assert lines == ["A    LONG  B", "a    1     x", "abcd 12345 y"]


def test_a_missing_value_is_a_dash_and_an_empty_string_is_not() -> None:
    lines = Table([("A", 2), ("B", 2), ("C", 0)], [[None, "", 0]]).lines()

    assert lines == ["A  B  C", "-     0"]


def test_a_table_without_rows_has_its_heading() -> None:
    assert Table([("A", 3), ("B", 0)], []).lines() == ["A   B"]


def test_objects_have_the_names_of_the_columns() -> None:
    shown = Table([("GROUP", 0), ("NEW-OFFSET", 0)], [["g", 7], ["h", None]])

    assert list(shown.objects()) == [{"group": "g", "new_offset": 7}, {"group": "h", "new_offset": None}]


def test_a_column_can_be_left_out() -> None:
    shown = Table([("A", 0), ("B", 0)], [[1, 2]]).without(0)

    assert shown.lines() == ["B", "2"]
