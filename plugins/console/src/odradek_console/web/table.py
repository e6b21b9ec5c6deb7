"""Tables of pages: filters, order, groups and pages in the URL; shown as HTML, JSON or CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fnmatch import translate
from operator import attrgetter, ge, gt, le, lt
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from odradek_console.json_form import JsonRow
from odradek_console.text import readable

Row = TypeVar("Row", bound=JsonRow)
Value = str | int | float | bool | None | tuple[str, ...]
PAGE_ROWS: Final = 100
MOST_ROWS: Final = 1_000
SORT, GROUP, PAGE, ROWS, SEARCH = RESERVED = ("sort", "group", "page", "rows", "q")
COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {">=": ge, "<=": le, ">": gt, "<": lt}
LONGEST_PATTERN: Final = 200
MOST_FILTERS: Final = 32
LONGEST_FILTERS: Final = 1_000
"""Characters of all filters. The time of a question grows with them, for each row."""
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
EMPTY: Final = '""'
"""The pattern of an empty value: an empty field of a form is no filter."""
WORD: Final = re.compile(r'(?<!\S)([\w-]+):("[^"]*"|\S+)')
"""A filter in a search."""
NO_VALUE: Final[Callable[[Any], Any]] = attrgetter("")
LITERAL: Final = "!!"
"""Prefix of a pattern for a text that begins with ``!``."""


class BadQuery(ValueError):
    """A query that a table cannot answer; the text says why."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table."""

    id: str
    """Its name in URLs and in CSV."""
    heading: str
    _: KW_ONLY
    value: Callable[[Row], Value] = NO_VALUE
    """The value to filter, sort, group and export by; by default the attribute of the id."""
    text: Callable[[Row], str] | None = None
    """The text to show; None: the value itself."""
    link: Callable[[Row], str] | None = None
    number: bool = False
    groups: bool = False
    """Whether rows can be grouped by it."""
    shown: bool = True
    """Whether the page shows it; filters and CSV have all columns."""
    by: Callable[[Row], Any] | None = None
    """The key to sort by; None: the value."""

    def __post_init__(self) -> None:
        if self.value is NO_VALUE:
            object.__setattr__(self, "value", attrgetter(self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Generic[Row]):
    """A value of a group of rows."""

    id: str
    heading: str
    value: Callable[[Sequence[Row]], Value]
    text: Callable[[Any], str] = str
    number: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows with the same value, as a page shows them."""

    value: str
    rows: int
    link: str
    """The query of its rows."""
    summaries: Mapping[str, Value]
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell as a page shows it."""

    text: str
    link: str = ""
    number: bool = False
    kind: str = ""
    """The id of its column, for the style sheet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The heading of a column, with the link that sorts by it."""

    text: str
    link: str = ""
    order: str = "none"
    """``ascending``, ``descending`` or ``none``, as ``aria-sort`` has it."""
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The part of a URL that chooses rows."""

    filters: tuple[tuple[str, str], ...] = ()
    search: str = ""
    sort: str = ""
    descending: bool = False
    group: str = ""
    page: int = 1
    rows: int = PAGE_ROWS
    kept: tuple[tuple[str, str], ...] = ()
    """Parameters of the page around the table."""

    def query(self, **changes: Any) -> str:
        """The query string of this state with changes; empty if it is the default."""
        found = {each: getattr(self, each) for each in self.__slots__} | changes
        pairs = [*found["kept"], *found["filters"]]
        pairs += [(SEARCH, found["search"])] if found["search"] else []
        pairs += [(SORT, ("-" if found["descending"] else "") + found["sort"])] if found["sort"] else []
        pairs += [(GROUP, found["group"])] if found["group"] else []
        pairs += [(PAGE, str(found["page"]))] if found["page"] > 1 else []
        pairs += [(ROWS, str(found["rows"]))] if found["rows"] != PAGE_ROWS else []
        return "?" + urlencode(pairs) if pairs else "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[Row]):
    """A table and its columns."""

    name: str
    columns: Sequence[Column[Row]]
    sort: str
    """The default order, as in a URL."""
    row: type[JsonRow]
    """The rows' class."""
    summaries: Sequence[Summary[Row]] = ()
    """What is told of a group of rows, beside their number."""
    usual: tuple[tuple[str, str], ...] = ()
    """Filters of a page for columns that its URL does not filter by. Groups are of all rows."""

    def column(self, name: str) -> Column[Row]:
        """A column by its id.

        Raises:
            BadQuery: No column has this id.
        """
        for each in self.columns:
            if each.id == name:
                return each
        raise BadQuery(f"{name} is no column; the columns are {', '.join(each.id for each in self.columns)}")

    def state(self, parameters: Iterable[tuple[str, str]], kept: Collection[str] = ()) -> State:
        """Read the parameters of a URL. Empty filters, which forms send, do not count.

        Args:
            parameters: Names and values.
            kept: Names of parameters that are not the table's, and stay in its links.

        Raises:
            BadQuery: A parameter or its value is unknown.
        """
        given = [(key, value) for key, value in parameters if value.strip()]
        control = {key: value for key, value in given if key in RESERVED}
        filters = tuple((key, value) for key, value in given if key not in (*RESERVED, *kept))
        for key, value in given:
            if len(value) > LONGEST_PATTERN:
                raise BadQuery(f"{key} has {len(value)} characters; at most {LONGEST_PATTERN} are allowed")
        if len(filters) > MOST_FILTERS or sum(len(value) for _, value in filters) > LONGEST_FILTERS:
            raise BadQuery(
                f"at most {MOST_FILTERS} filters with {LONGEST_FILTERS} characters together are allowed"
            )
        for key, _ in filters:
            self.column(key)
        sort = control.get(SORT, self.sort)
        self.column(sort.removeprefix("-"))
        group = control.get(GROUP, "")
        if group and not self.column(group).groups:
            known = ", ".join(each.id for each in self.columns if each.groups)
            raise BadQuery(f"rows cannot be grouped by {group}, only by {known}")
        return State(
            filters=filters,
            search=control.get(SEARCH, ""),
            sort=sort.removeprefix("-"),
            descending=sort.startswith("-"),
            group=group,
            page=whole(control, PAGE, 1, 1_000_000),
            rows=whole(control, ROWS, PAGE_ROWS, MOST_ROWS),
            kept=tuple((key, value) for key, value in given if key in kept),
        )

    def select(self, rows: Iterable[Row], state: State) -> list[Row]:
        """The rows that pass all filters, in order; equal ones by the first column. All pages."""
        asked, words = self.searched(state.search)
        tests = [passes(self.column(name), pattern) for name, pattern in (*state.filters, *asked)]
        if words:
            tests.append(self.contains(words))
        found = [row for row in rows if all(test(row) for test in tests)]
        column, first = self.column(state.sort), self.columns[0]
        found.sort(key=lambda row: sort_key(first, row))
        found.sort(key=lambda row: sort_key(column, row), reverse=state.descending)
        return found

    def as_usual(self, state: State) -> State:
        """The state of a page, which leaves out what the URL does not ask for."""
        named = {name for name, _ in (*state.filters, *self.searched(state.search)[0])}
        more = [each for each in self.usual if each[0] not in named and not state.group]
        return replace(state, filters=(*state.filters, *more))

    def searched(self, text: str) -> tuple[list[tuple[str, str]], str]:
        """The filters in a search such as ``team:billing lag:>100 orders``, and its other words."""
        known = {each.id for each in self.columns}
        filters = [(key, value.strip('"')) for key, value in WORD.findall(text) if key in known]
        words = WORD.sub(lambda found: "" if found[1] in known else found[0], text)
        return filters, " ".join(words.split())

    def contains(self, text: str) -> Callable[[Row], bool]:
        """A test: some column contains the text, in any case."""
        wanted, values = text.casefold(), [column.value for column in self.columns]
        return lambda row: any(wanted in each.casefold() for value in values for each in texts(value(row)))

    def cells(self, row: Row) -> list[Cell]:
        """The cells of a row on a page."""
        return [
            Cell(
                text=shown(column, row),
                link=column.link(row) if column.link else "",
                number=column.number,
                kind=column.id,
            )
            for column in self.columns
            if column.shown
        ]

    def headings(self, state: State) -> list[Heading]:
        """The headings on a page. The link of the present order turns it around."""
        found = []
        for column in self.columns:
            if column.shown:
                present = column.id == state.sort
                descending = not state.descending if present else column.number
                order = ("descending" if state.descending else "ascending") if present else "none"
                link = state.query(sort=column.id, descending=descending, page=1)
                found.append(Heading(text=column.heading, link=link, order=order, number=column.number))
        return found

    def grouped(self, rows: Iterable[Row], state: State) -> list[Group]:
        """The groups of rows by each value of a column, the largest one first."""
        column = self.column(state.group)
        found: dict[str, list[Row]] = {}
        for row in rows:
            for each in texts(column.value(row)):
                found.setdefault(each, []).append(row)
        ordered = sorted(found.items(), key=lambda each: (-len(each[1]), each[0]))
        return [self.group(column, value, of_value, state) for value, of_value in ordered]

    def group(self, column: Column[Row], value: str, rows: Sequence[Row], state: State) -> Group:
        """One group."""
        values = {each.id: each.value(rows) for each in self.summaries}
        return Group(
            value=value,
            rows=len(rows),
            link=state.query(group="", page=1, filters=(*state.filters, (column.id, exact(value)))),
            summaries=values,
            cells=[
                Cell(text=each.text(values[each.id]), number=each.number, kind=each.id)
                for each in self.summaries
            ],
        )

    def csv(self, rows: Iterable[Row]) -> str:
        """The rows with all columns as CSV (RFC 4180), headed by ids.

        A text that a spreadsheet would take for a formula begins with an apostrophe.
        """
        found = io.StringIO()
        writer = csv.writer(found)
        writer.writerow([each.id for each in self.columns])
        values = [each.value for each in self.columns]
        writer.writerows([exported(value(row)) for value in values] for row in rows)
        return found.getvalue()


def measure(
    name: str, heading: str, unit: str, value: Callable[[Row], float | None] | None = None
) -> Column[Row]:
    """The column of a number with a unit."""
    read = value or attrgetter(name)
    return Column(name, heading, value=read, text=lambda row: readable(read(row), unit), number=True)


def whole(control: Mapping[str, str], name: str, default: int, most: int) -> int:
    """A whole number from 1 to a bound.

    Raises:
        BadQuery: It is not one.
    """
    text = control.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= most):
        raise BadQuery(f"{name} must be a whole number from 1 to {most}, not {text!r}")
    return int(text)


def passes(column: Column[Row], pattern: str) -> Callable[[Row], bool]:
    """A test of one column: wildcards, comparisons of numbers such as ``>5``, and ``!`` for the opposite.

    Raises:
        BadQuery: A comparison without a number.
    """
    if pattern.startswith("!") and not pattern.startswith(LITERAL):
        opposite = passes(column, pattern[1:])
        return lambda row: not opposite(row)
    for sign, compare in COMPARISONS.items():
        if column.number and pattern.startswith(sign):
            try:
                bound = float(pattern.removeprefix(sign))
            except ValueError:
                raise BadQuery(f"{column.id} is compared with numbers, not with {pattern!r}") from None
            return lambda row: isinstance(value := column.value(row), int | float) and compare(value, bound)
    fits = re.compile(translate("" if pattern == EMPTY else pattern.removeprefix("!"))).match
    return lambda row: any(fits(each) for each in texts(column.value(row)))


def texts(value: Value) -> tuple[str, ...]:
    """The values as texts; an empty tuple of texts counts as one empty text."""
    if isinstance(value, tuple):
        return value or ("",)
    return ("" if value is None else str(value),)


def exact(text: str) -> str:
    """A pattern that matches only this text."""
    escaped = "".join(f"[{each}]" if each in "*?[" else each for each in text)
    return "!" + escaped if text.startswith("!") else escaped or EMPTY


def shown(column: Column[Row], row: Row) -> str:
    """The text of a cell."""
    return column.text(row) if column.text else ", ".join(texts(column.value(row)))


def sort_key(column: Column[Row], row: Row) -> Any:
    """The key to sort by: missing values come first, and tuples by their length."""
    value = column.by(row) if column.by else column.value(row)
    if column.by is None and isinstance(value, tuple):
        return len(value), value
    return (value is not None, value if value is not None else 0)


def exported(value: Value) -> str:
    """A value in CSV."""
    if isinstance(value, int | float):
        return str(value)
    # Some spreadsheets take semicolons for the borders of cells, whatever the file's separator is.
    parts = ";".join(texts(value)).split(";")
    marked = ("'" + part if part.lstrip(" ").startswith(FORMULA) else part for part in parts)
    return ";".join(marked) if isinstance(value, str | tuple) else ";".join(parts)
