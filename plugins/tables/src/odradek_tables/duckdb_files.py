"""Files of tables for DuckDB: under the table's name, with the partition columns."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from odradek_tables.files import arrow_files
from odradek_tables.schemas import Table

MEMORY = "1GB"
"""Memory limit of `bounded`; beyond it, data goes to disk."""
SQL_TYPES = {
    pa.string(): "VARCHAR",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
}


def connection() -> duckdb.DuckDBPyConnection:
    """A new database in memory, with UTC as time zone."""
    opened = duckdb.connect()
    opened.execute("SET TimeZone = 'UTC'")
    opened.execute("SET enable_progress_bar = false")
    return opened


@contextmanager
def bounded() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that uses one core, limited memory, and a folder of its own beyond that."""
    with tempfile.TemporaryDirectory(prefix="odradek-tables-") as folder, connection() as opened:
        opened.execute(f"SET threads = 1; SET memory_limit = '{MEMORY}'; SET temp_directory = '{folder}'")
        opened.execute("SET preserve_insertion_order = false")
        yield opened


def add_table(
    opened: duckdb.DuckDBPyConnection, root: str, table: Table, files: Sequence[str], name: str = ""
) -> None:
    """Add files of a table as a view; without files, an empty one.

    DuckDB reads local files itself, which is many times faster than through Arrow. Files of a URI are read
    through Arrow. The view has the name of the table by default.
    """
    called = name or table.name
    if not files:
        opened.register(called, table.schema.empty_table())
    elif "://" in root:
        opened.register(called, arrow_files(root, table, files))
    else:
        opened.execute(f"CREATE VIEW {called} AS {parquet(table, files)}")


def parquet(table: Table, files: Sequence[str]) -> str:
    """The query that reads a table's files, including the partition columns."""
    paths = ", ".join(quoted(str(Path(each))) for each in files)
    kinds = ", ".join(
        f"{quoted(name)}: {SQL_TYPES[table.schema.field(name).type]}" for name in table.partitions
    )
    columns = ", ".join(f'"{name}"' for name in table.schema.names)
    read = (
        f"read_parquet([{paths}], hive_partitioning = true, hive_types = {{{kinds}}}, union_by_name = true)"
    )
    if table.added:  # perhaps no file has these columns
        empty = ", ".join(
            f'NULL::{SQL_TYPES[table.schema.field(each).type]} AS "{each}"' for each in table.added
        )
        read = f"(SELECT {empty} WHERE false UNION ALL BY NAME SELECT * FROM {read})"
    return f"SELECT {columns} FROM {read}"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
