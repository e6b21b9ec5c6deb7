"""Tables, sparklines and numbers for narrow terminals."""

from __future__ import annotations

import math
from itertools import product

import pytest
from rich.cells import cell_len

from odradek_console.text import (
    Column,
    age,
    clipped,
    counted,
    label_text,
    readable,
    short,
    sparkline,
    table_lines,
    wrapped,
)
from support.offenders import offenders

COLUMNS: list[Column[str]] = [
    Column(heading="NAME", cell=lambda row: row, least=5, most=20, rank=0),
    Column(heading="SIZE", cell=lambda row: str(len(row)), least=4, most=4, rank=1, right=True),
    Column(heading="AGAIN", cell=lambda row: row, least=10, most=10, rank=2),
]


def test_columns_that_do_not_fit_are_left_out() -> None:
    assert table_lines(COLUMNS, ["abc"], 80) == ["NAME   SIZE  AGAIN", "abc       3  abc"]
    assert table_lines(COLUMNS, ["abc"], 20) == ["NAME   SIZE", "abc       3"]
    assert table_lines(COLUMNS, ["abc"], 8) == ["NAME", "abc"]


def test_labels_name_nodes_as_prometheus_does() -> None:
    labels = (("node_id", "node-+1"), ("topic", "node-+1"))

    assert label_text(labels) == "node_id=coordinator-1, topic=node-+1"
    assert label_text((("node.id", "1"),)) == "node.id=1"


def fits(text: str, width: int) -> None:
    assert max(map(cell_len, table_lines(COLUMNS, [text], width))) <= width


def test_no_line_is_wider_than_the_terminal() -> None:
    assert offenders(fits, product(("a" * 50, "名" * 30, "", "é" * 21), range(8, 60))) == {}


def test_a_sparkline_begins_at_zero() -> None:
    assert sparkline([0, 1, 2, 4], 8) == "▁▂▄█"
    assert sparkline([0, 0], 8) == "▁▁"
    assert sparkline([5, 4, 2], 2) == "█▄"
    assert sparkline([math.nan, 1], 8) == "█"
    assert sparkline([], 8) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (math.nan, "-"),
        (0, "0"),
        (0.5, "0.5"),
        (0.00002, "<0.001"),
        (1234.4, "1234"),
        (12_345, "12.3k"),
        (9_999_999, "10M"),
        (-3e9, "-3G"),
        (5e13, "50T"),
    ],
)
def test_short_numbers(value: float | None, text: str) -> None:
    assert short(value) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(-5, "0s"), (500, "0.5s"), (5_000, "5s"), (90_000, "90s"), (600_000, "10m"), (9e6, "2h"), (9e8, "10d")],
)
def test_ages(milliseconds: float, text: str) -> None:
    assert age(milliseconds) == text


def test_texts_are_cut_and_wrapped_to_a_width() -> None:
    assert [clipped("abc", 3), clipped("abcd", 3), clipped("ab cd", 4)] == ["abc", "ab…", "ab…"]
    assert wrapped("one two three", 9, 2) == ["  one two", "  three"]
    assert wrapped("a" * 12, 8, 2) == ["  aaaaaa", "  aaaaaa"]
    assert wrapped("", 8, 2) == []
    assert max(map(cell_len, wrapped("名" * 40, 20, 4))) <= 20


def test_counts_of_things() -> None:
    assert [counted(number, "client") for number in (0, 1, 2)] == ["0 clients", "1 client", "2 clients"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12_000_000, "By/s", "12 MB/s"),
        (999, "B", "999 B"),
        (180_000, "ms", "3 min"),
        (850, "ms", "850 ms"),
        (7_100, "ms", "7.1 s"),
        (7_200, "s", "2 h"),
        (0.05, "share", "5 %"),
        (0.00005, "share", "<0.1 %"),
        (0.031, "share of the time in poll()", "3.1 % of the time in poll()"),
        (1_500, "records/s", "1500/s"),
        (3, "{connection}", "3 connection"),
        (3, "1", "3"),
        (None, "ms", "-"),
        (math.inf, "ms", "-"),
    ],
)
def test_a_value_is_readable_with_its_unit(value: float | None, unit: str, text: str) -> None:
    assert readable(value, unit) == text
