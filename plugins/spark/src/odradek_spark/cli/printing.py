"""Tables for people and for programs."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import click
import pyarrow as pa

from odradek.findings.client_metrics import PREFIX

FORMATS = ("table", "json", "csv")
NUMBERS = (int, float, Decimal)
GAP = 2
"""Spaces between columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column for people: its heading, and a text for each row."""

    heading: str
    texts: Sequence[str]
    right: bool = False
    """Aligned right, as numbers are."""
    optional: bool = False
    """Left out if the terminal is too narrow."""

    @property
    def width(self) -> int:
        return max(map(len, (self.heading, *self.texts)))

    def cells(self) -> Iterator[str]:
        for each in (self.heading, *self.texts):
            yield each.rjust(self.width) if self.right else each.ljust(self.width)


def show(
    rows: pa.Table, form: str, nothing: str | Callable[[], str], people: Callable[[], None] | None = None
) -> None:
    """Print rows on stdout: a table for people, one JSON object per line, or CSV with a heading."""
    if form == "json":
        for row in rows.to_pylist():
            click.echo(json.dumps({name: json_value(value) for name, value in row.items()}))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows.column_names)
        writer.writerows([csv_value(value) for value in row.values()] for row in rows.to_pylist())
    elif not rows.num_rows:
        click.echo(visible(nothing if isinstance(nothing, str) else nothing()))
    elif people is not None:
        people()
    else:
        show_columns(columns_of(rows))


def show_columns(columns: Sequence[Column], indent: str = "") -> None:
    """Print a table: a line for each row, or on a narrow terminal a block for each.

    On a terminal, empty columns are left out, and optional ones if a line would be too long; the last line
    says which.
    """
    if not sys.stdout.isatty():
        for line in lines(columns, indent):
            click.echo(line)
        return
    width = shutil.get_terminal_size().columns - len(indent)
    told = [each for each in columns if is_told(each.texts)]
    fitting = fitted(told, width)
    if not fits(fitting, width):
        for number, block in enumerate(blocks(told)):
            click.echo(("\n" if number else "") + block)
        return
    heading, *rows = lines(fitting, indent)
    click.echo("\n".join([click.style(heading, bold=True), *rows]))
    dropped = [each.heading for each in told if each not in fitting]
    if dropped:
        hidden = f"not shown, the terminal is too narrow: {', '.join(dropped)}"
        click.echo(click.wrap_text(hidden, width - 1, indent, indent))


def fitted(columns: Sequence[Column], width: int) -> Sequence[Column]:
    """The columns that fit, at least those that are not optional."""
    kept = [each for each in columns if not each.optional]
    for each in columns:
        if each.optional and fits([*kept, each], width):
            kept.append(each)
    return [each for each in columns if each in kept]


def fits(columns: Sequence[Column], width: int) -> bool:
    return sum(each.width + GAP for each in columns) - GAP <= width


def columns_of(rows: pa.Table) -> list[Column]:
    return [
        Column(name, [cell(name, value) for value in values], right=is_number(values))
        for name, values in rows.to_pydict().items()
    ]


def json_value(value: Any) -> Any:
    """A value for JSON: times in ISO 8601, bytes in hexadecimal, other types that JSON lacks as text."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case Decimal() if value.as_tuple().exponent == 0:
            return int(value)
        case bytes():
            return value.hex()
        case dict():
            return {str(name): json_value(each) for name, each in value.items()}
        case list():
            return [json_value(each) for each in value]
        case float() if not math.isfinite(value):
            return str(value)
        case None | str() | bool() | int() | float():
            return value
    return str(value)


def csv_value(value: Any) -> Any:
    found = json_value(value)
    return json.dumps(found) if isinstance(found, list | dict) else found


def cell(name: str, value: Any) -> str:
    """A value for people; metric names lose their common prefix."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value:.6g}"
    return visible(str(value).removeprefix(PREFIX) if name == "name" else str(json_value(value)))


def visible(text: str) -> str:
    """A text without control characters: clients choose their names, and a terminal would obey them."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def is_number(values: Sequence[Any]) -> bool:
    return all(isinstance(value, NUMBERS) or value is None for value in values)


def lines(columns: Sequence[Column], indent: str = "") -> Iterator[str]:
    for row in zip(*(each.cells() for each in columns), strict=True):
        yield indent + (" " * GAP).join(row).rstrip()


def blocks(columns: Sequence[Column]) -> Iterator[str]:
    width = max(len(each.heading) for each in columns)
    for row in zip(*(each.texts for each in columns), strict=True):
        named = zip(columns, row, strict=True)
        yield "\n".join(f"{each.heading.ljust(width)}{' ' * GAP}{text}".rstrip() for each, text in named)


def is_told(texts: Sequence[str]) -> bool:
    """Whether any row has a value in a column."""
    return any(text not in ("", "-") for text in texts)
