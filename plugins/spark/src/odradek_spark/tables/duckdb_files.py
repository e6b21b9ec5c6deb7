"""Files of tables as DuckDB reads them: under the table's name, with the columns that are folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from odradek_spark.tables.files import file_system
from odradek_spark.tables.schemas import Table

SQL_TYPES = {pa.string(): "VARCHAR", pa.int32(): "INTEGER"}


def connection() -> duckdb.DuckDBPyConnection:
    """A database of its own, in memory, whose times are UTC."""
    opened = duckdb.connect()
    opened.execute("SET TimeZone = 'UTC'")
    opened.execute("SET enable_progress_bar = false")
    return opened


def add_table(
    opened: duckdb.DuckDBPyConnection, root: str, table: Table, files: Sequence[str], name: str = ""
) -> None:
    """Make some files of a table known; of none, an empty table.

    Files are read by DuckDB itself, which is many times faster than through Arrow; where they are not on
    this machine, Arrow fetches them.

    Args:
        opened: The database.
        root: Path or URI of the dataset.
        table: Whose files they are.
        files: Their whole paths or URIs.
        name: What it is called there; by default as the table.
    """
    called = name or table.name
    if not files:
        opened.register(called, table.schema.empty_table())
    elif "://" in root:
        opened.register(called, fetched(f"{root}/{table.name}", table, files))
    else:
        opened.execute(f"CREATE VIEW {called} AS {parquet(table, files)}")


def fetched(uri: str, table: Table, files: Sequence[str]) -> ds.Dataset:
    """A table's files through Arrow. Not as `deltalake` does it, which takes a column whose range the log
    does not have for null, and passes rows over where that column is asked for.
    """
    system, base = file_system(uri)
    folders = pa.schema([table.schema.field(name) for name in table.partitions])
    return ds.dataset(
        [f"{base}/{each.rpartition(f'/{table.name}/')[2]}" for each in files],
        schema=table.schema,
        format="parquet",
        filesystem=system,
        partitioning=ds.partitioning(folders, flavor="hive"),
    )


def parquet(table: Table, files: Sequence[str]) -> str:
    """The query that reads a table's files, columns that are folders included."""
    paths = ", ".join(quoted(str(Path(each))) for each in files)
    kinds = ", ".join(
        f"{quoted(name)}: {SQL_TYPES[table.schema.field(name).type]}" for name in table.partitions
    )
    columns = ", ".join(f'"{name}"' for name in table.schema.names)
    return (
        f"SELECT {columns} FROM read_parquet([{paths}], hive_partitioning = true, hive_types = {{{kinds}}},"
        " union_by_name = true)"
    )


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
