"""The readers that the documents name, each as a function: the rows of a table that a filter selects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder

from odradek_tables.query.reader import Reader
from odradek_tables.schemas import Table


@dataclass(frozen=True, slots=True)
class Filter:
    """A comparison of a column with a value of the table."""

    column: str
    op: str
    value: Any

    @property
    def sql(self) -> str:
        """The condition in SQL that all engines understand."""
        if self.op == "null":
            return f'"{self.column}" IS NULL'
        return f'"{self.column}" {self.op} {literal(self.value)}'


def literal(value: Any) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}+00:00'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def filters(table: Table, whole: pa.Table) -> Iterator[Filter]:
    """Filters on each column of a table: equality and order with a value of it, or null."""
    for field in table.schema:
        if pa.types.is_nested(field.type):
            continue
        values = [each for each in whole[field.name].drop_null().unique().to_pylist() if each == each]
        if not values:
            continue
        middle = sorted(values)[len(values) // 2]
        yield Filter(field.name, "=", middle)
        if whole[field.name].null_count:
            yield Filter(field.name, "null", None)
        elif isinstance(middle, int | float | datetime | Decimal) and not isinstance(middle, bool):
            yield Filter(field.name, ">=", middle)


def one_of_each_kind(table: Table, found: list[Filter]) -> list[Filter]:
    """One filter for each kind of column: by its type, its statistics and whether it is a folder."""
    kinds: dict[tuple[Any, ...], Filter] = {}
    for each in found:
        kind = table.schema.field(each.column).type
        key = (kind, each.column in table.ranged, each.column in table.partitions, each.op)
        kinds.setdefault(key, each)
    return list(kinds.values())


def expression(found: Filter, kind: pa.DataType) -> ds.Expression:
    """The filter for pyarrow."""
    column = ds.field(found.column)
    if found.op == "null":
        return column.is_null()
    value = pa.scalar(found.value, kind)
    return column == value if found.op == "=" else column >= value


def by_pandas(table: DeltaTable, described: Table, found: Filter) -> pa.Table:
    """``to_pandas(filters=...)``; the condition for null is an expression."""
    frame = table.to_pandas(filters=disjunction(found, described), types_mapper=pd_types)
    return pa.Table.from_pandas(frame, described.schema, preserve_index=False)


def disjunction(found: Filter, described: Table) -> Any:
    """The filter for ``deltalake``."""
    if found.op == "null":
        return expression(found, described.schema.field(found.column).type)
    return [(found.column, found.op, found.value)]


def pd_types(kind: pa.DataType) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    return pd.ArrowDtype(kind)


def by_deltalake(table: DeltaTable, described: Table, found: Filter) -> pa.Table:
    """``to_pyarrow_table(filters=...)``."""
    return table.to_pyarrow_table(filters=disjunction(found, described))


def by_pyarrow(table: DeltaTable, described: Table, found: Filter) -> pa.Table:
    """``to_pyarrow_dataset()``."""
    kind = described.schema.field(found.column).type
    return table.to_pyarrow_dataset().to_table(filter=expression(found, kind))


def by_duckdb_dataset(table: DeltaTable, described: Table, found: Filter) -> pa.Table:
    """DuckDB on the dataset of ``deltalake``."""
    opened = duckdb.connect()
    opened.execute("SET TimeZone = 'UTC'")
    opened.register("found", table.to_pyarrow_dataset())
    return as_arrow(opened.sql(f"SELECT * FROM found WHERE {duckdb_sql(found)}"))


def by_duckdb_files(table: DeltaTable, described: Table, found: Filter) -> pa.Table:
    """DuckDB on the files that the log names, as ``odradek spark query`` reads them."""
    root = table.table_uri.removeprefix("file://").rstrip("/").rpartition("/")[0]
    return opened(root).ask(f"SELECT * FROM {described.name} WHERE {duckdb_sql(found)}")


@cache
def opened(root: str) -> Reader:
    """The tables of a dataset that does not change; opening them takes longer than a filter."""
    return Reader(root)


def duckdb_sql(found: Filter) -> str:
    if isinstance(found.value, bytes):
        return f"\"{found.column}\" {found.op} from_hex('{found.value.hex()}')"
    return found.sql.replace("TIMESTAMP '", "TIMESTAMPTZ '")


def as_arrow(relation: Any) -> pa.Table:
    return relation.to_arrow_table()


def by_polars(table: DeltaTable, described: Table, found: Filter) -> pa.Table:
    """``polars.scan_delta``."""
    return pl.scan_delta(table.table_uri).filter(polars_condition(found)).collect().to_arrow()


def by_polars_pyarrow(table: DeltaTable, described: Table, found: Filter) -> pa.Table:
    """``polars.scan_delta(use_pyarrow=True)``."""
    scanned = pl.scan_delta(table.table_uri, use_pyarrow=True)
    return scanned.filter(polars_condition(found)).collect().to_arrow()


def polars_condition(found: Filter) -> pl.Expr:
    column = pl.col(found.column)
    if found.op == "null":
        return column.is_null()
    return column.eq(found.value) if found.op == "=" else column.ge(found.value)


def by_delta_sql(table: DeltaTable, described: Table, found: Filter) -> pa.Table:
    """The SQL of delta-rs."""
    rows = QueryBuilder().register("found", table).execute(f"SELECT * FROM found WHERE {found.sql}")
    return pa.table(rows.read_all())


READERS: Mapping[str, Callable[[DeltaTable, Table, Filter], pa.Table]] = {
    "deltalake": by_deltalake,
    "pandas": by_pandas,
    "pyarrow": by_pyarrow,
    "duckdb on the dataset": by_duckdb_dataset,
    "duckdb on the files": by_duckdb_files,
    "polars": by_polars,
    "polars through pyarrow": by_polars_pyarrow,
    "delta-rs SQL": by_delta_sql,
}


def lines(table: Table, rows: pa.Table) -> list[str]:
    """Comparable rows: NaN equals NaN, and the order is ignored."""
    columns = {field.name: rows[field.name].cast(field.type).to_pylist() for field in table.schema}
    return sorted(repr(row) for row in zip(*columns.values(), strict=True))


def selected(table: Table, whole: pa.Table, found: Filter) -> pa.Table:
    """The expected rows: the whole table, filtered in memory."""
    return whole.filter(expression(found, table.schema.field(found.column).type))
