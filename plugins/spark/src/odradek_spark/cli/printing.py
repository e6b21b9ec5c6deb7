"""Tables for people and for programs."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import click
import pyarrow as pa

from odradek_spark.query.views import PREFIX

FORMATS = ("table", "json", "csv")
NUMBERS = (int, float, Decimal)
MAX_COLUMNS = 1 << 16
"""Width of a line that must not be wrapped."""


def show(rows: pa.Table, form: str, nothing: str) -> None:
    """Print rows on stdout.

    Args:
        rows: The rows.
        form: One of `FORMATS`: a table for people, one JSON object per line, or CSV with a heading.
        nothing: Message instead of an empty table.
    """
    if form == "json":
        for row in rows.to_pylist():
            click.echo(json.dumps({name: json_value(value) for name, value in row.items()}))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows.column_names)
        writer.writerows([csv_value(value) for value in row.values()] for row in rows.to_pylist())
    elif not rows.num_rows:
        click.echo(nothing)
    elif sys.stdout.isatty():
        show_rich(rows)
    else:
        for line in lines(rows):
            click.echo(line)


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
    """A value for a CSV cell: lists and structs as JSON."""
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


def lines(rows: pa.Table) -> Iterator[str]:
    """A heading and the rows, in columns as wide as their widest cell; numbers are right-aligned."""
    columns = rows.to_pydict()
    texts = {name: [name, *(cell(name, value) for value in values)] for name, values in columns.items()}
    widths = {name: max(map(len, column)) for name, column in texts.items()}
    right = {name for name, values in columns.items() if is_number(values)}
    for index in range(rows.num_rows + 1):
        yield "  ".join(
            column[index].rjust(widths[name]) if name in right else column[index].ljust(widths[name])
            for name, column in texts.items()
        ).rstrip()


def show_rich(rows: pa.Table) -> None:
    """Print the rows on a terminal: a line for each, or a block for each if a line would be too long.

    Empty columns are left out.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    told = rows.select([name for name in rows.column_names if is_told(rows[name].to_pylist())])
    columns = told.to_pydict()
    texts = [[Text(cell(name, value)) for name, value in row.items()] for row in told.to_pylist()]
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for name, values in columns.items():
        table.add_column(name, justify="right" if is_number(values) else "left")
    for row in texts:
        table.add_row(*row)
    console = Console()
    unbound = console.options.update(max_width=MAX_COLUMNS)
    if console.measure(table, options=unbound).maximum <= console.width:
        console.print(table)
        return
    for number, row in enumerate(texts):
        block = Table.grid(padding=(0, 2, 0, 0))
        for name, text in zip(columns, row, strict=True):
            block.add_row(Text(name, style="bold"), text)
        console.print(*([""] if number else []), block, sep="\n")


def is_told(values: Sequence[Any]) -> bool:
    """Whether any row has a value in a column."""
    return any(value not in (None, "") for value in values)
