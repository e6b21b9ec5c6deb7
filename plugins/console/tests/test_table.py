"""Tables: filters, order, groups and pages, as a URL gives them."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

import pytest

from odradek_console.json_form import JsonRow
from odradek_console.web.table import BadQuery, Column, Summary, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Animal(JsonRow):
    name: str
    legs: int | None
    colors: tuple[str, ...] = ()


TABLE: Table[Animal] = Table(
    name="animals",
    sort="name",
    row=Animal,
    summaries=(
        Summary(id="most", heading="Most legs", value=lambda rows: max(row.legs or 0 for row in rows)),
    ),
    columns=(
        Column(id="name", heading="Name", value=lambda row: row.name, link=lambda row: f"/{row.name}"),
        Column(id="legs", heading="Legs", value=lambda row: row.legs, number=True),
        Column(id="colors", heading="Colors", value=lambda row: row.colors, groups=True),
        Column(id="size", heading="Size", value=lambda row: len(row.name), number=True, shown=False),
    ),
)
ROWS = [
    Animal(name="spider", legs=8, colors=("black",)),
    Animal(name="cat", legs=4, colors=("black", "white")),
    Animal(name="snake", legs=None),
    Animal(name="[x]*", legs=2, colors=("",)),
]


def names(query: str) -> list[str]:
    return [row.name for row in TABLE.select(ROWS, TABLE.state(parse_qsl(query, keep_blank_values=True)))]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["[x]*", "cat", "snake", "spider"]),
        ("name=s*", ["snake", "spider"]),
        ("name=", ["[x]*", "cat", "snake", "spider"]),
        ("name=!s*", ["[x]*", "cat"]),
        ("name=S*", []),
        ("q=S", ["snake", "spider"]),
        ("q=black", ["cat", "spider"]),
        ("q=colors:white", ["cat"]),
        ("q=legs:>3+S", ["spider"]),
        ('q=name:"s*"', ["snake", "spider"]),
        ("q=wings:2", []),
        ("colors=white", ["cat"]),
        ("colors=%3F*", ["cat", "spider"]),
        ("colors=%22%22", ["[x]*", "snake"]),
        ("colors=!%22%22", ["cat", "spider"]),
        ("legs=4", ["cat"]),
        ("legs=%3E2", ["cat", "spider"]),
        ("legs=%3E%3D2", ["[x]*", "cat", "spider"]),
        ("legs=%3C4", ["[x]*"]),
        ("legs=!%3C4", ["cat", "snake", "spider"]),
        ("size=3", ["cat"]),
        ("name=s*&legs=8", ["spider"]),
        ("name=s*&name=*e", ["snake"]),
        ("sort=-name", ["spider", "snake", "cat", "[x]*"]),
        ("sort=legs", ["snake", "[x]*", "cat", "spider"]),
        ("sort=-legs", ["spider", "cat", "[x]*", "snake"]),
        ("sort=-colors&colors=%3F*", ["cat", "spider"]),
    ],
)
def test_a_query_chooses_rows(query: str, found: list[str]) -> None:
    assert names(query) == found


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("wings=2", "wings is no column"),
        ("sort=wings", "wings is no column"),
        ("group=name", "cannot be grouped by name, only by colors"),
        ("group=wings", "wings is no column"),
        ("legs=%3Emany", "compared with numbers"),
        ("page=0", "page must be a whole number from 1"),
        ("page=x", "page must be"),
        ("rows=1001", "from 1 to 1000"),
        ("rows=99999999999999999999", "from 1 to 1000"),
        ("name=" + "x" * 201, "at most 200"),
        ("page=%D9%A3", "page must be"),
    ],
)
def test_a_query_that_makes_no_sense(query: str, words: str) -> None:
    with pytest.raises(BadQuery, match=words):
        names(query)


def test_what_a_url_does_not_ask_for_is_filtered_as_usual() -> None:
    table = replace(TABLE, usual=(("name", "!s*"),))
    queries = ("", "legs=4", "name=snake", "q=name:*", "group=colors")

    states = [table.as_usual(table.state(parse_qsl(each))) for each in queries]

    found = [[row.name for row in table.select(ROWS, each)] for each in states]
    assert found == [["[x]*", "cat"], ["cat"], ["snake"], names(""), names("")]


@pytest.mark.parametrize(
    "query", ["", "name=s*&legs=%3E2", "q=s&sort=-legs&page=2&rows=7", "group=colors&name=%5B%5D%26%3D"]
)
def test_a_state_is_a_query(query: str) -> None:
    state = TABLE.state(parse_qsl(query))

    assert TABLE.state(parse_qsl(state.query().removeprefix("?"))) == state


def test_each_group_links_to_its_rows() -> None:
    state = TABLE.state([("group", "colors")])

    groups = TABLE.grouped(ROWS, state)

    assert [(each.value, each.rows) for each in groups] == [("", 2), ("black", 2), ("white", 1)]
    assert [len(names(each.link.removeprefix("?"))) for each in groups] == [2, 2, 1]
    assert [each.summaries for each in groups] == [{"most": 2}, {"most": 8}, {"most": 4}]


def test_a_group_of_wildcards_links_to_its_rows_only() -> None:
    rows = [Animal(name="a", legs=1, colors=(each,)) for each in ("*", "[a]", "!x", "?", "plain")]
    state = TABLE.state([("group", "colors")])

    for each in TABLE.grouped(rows, state):
        chosen = TABLE.select(rows, TABLE.state(parse_qsl(each.link.removeprefix("?"))))
        assert [row.colors for row in chosen] == [(each.value,)]


def test_headings_turn_the_order_around() -> None:
    headings = TABLE.headings(TABLE.state([("sort", "legs"), ("page", "3")]))

    assert [each.order for each in headings] == ["none", "ascending", "none"]
    assert headings[0].link == "?sort=name"
    assert headings[1].link == "?sort=-legs"


def test_cells() -> None:
    name, legs, colors = TABLE.cells(ROWS[1])

    assert (name.text, name.link) == ("cat", "/cat")
    assert (legs.text, legs.number) == ("4", True)
    assert colors.text == "black, white"
    assert TABLE.cells(ROWS[2])[1].text == ""


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_a_text_is_no_formula_of_a_spreadsheet(text: str) -> None:
    (_, row) = csv.reader(io.StringIO(TABLE.csv([Animal(name=text, legs=-4)])))

    assert row[0] == "'" + text
    assert row[1] == "-4"


@pytest.mark.parametrize(
    ("text", "expected"), [("x;=1+1", "x;'=1+1"), ("x; =1", "x;' =1"), (" =1", "' =1"), ("a;b", "a;b")]
)
def test_no_part_between_semicolons_is_a_formula(text: str, expected: str) -> None:
    (_, row) = csv.reader(io.StringIO(TABLE.csv([Animal(name=text, legs=4)])))

    assert row[0] == expected


def test_csv_has_all_columns() -> None:
    rows = list(csv.reader(io.StringIO(TABLE.csv([Animal(name='a,"b"\n', legs=None, colors=("x", "y"))]))))

    assert rows == [["name", "legs", "colors", "size"], ['a,"b"\n', "", "x;y", "6"]]


def test_a_pattern_of_many_stars_ends() -> None:
    """A naive translation into a regular expression would try each division of the name among the stars."""
    row = replace(ROWS[0], name=20_000 * "a")
    pattern = 99 * "*a" + "*b"

    assert list(TABLE.select([row], TABLE.state([("name", pattern)]))) == []
    assert list(TABLE.select([row], TABLE.state([("name", pattern.removesuffix("*b"))]))) == [row]


@pytest.mark.parametrize("filters", [32 * "name=*&", 5 * f"name={200 * 'x'}&"])
def test_many_filters_are_a_question(filters: str) -> None:
    assert set(names(filters)) <= {row.name for row in ROWS}


@pytest.mark.parametrize("filters", [33 * "name=*&", 6 * f"name={200 * 'x'}&"])
def test_more_filters_are_refused(filters: str) -> None:
    with pytest.raises(BadQuery, match="at most 32 filters with 1000 characters together are allowed"):
        names(filters)
