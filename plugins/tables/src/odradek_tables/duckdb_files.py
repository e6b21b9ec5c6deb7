"""Files of tables for DuckDB: under the table's name, with the partition columns."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from odradek_tables.files import file_system
from odradek_tables.schemas import Table

if TYPE_CHECKING:
    import pyarrow.dataset as ds

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
    through Arrow.

    Args:
        opened: The database.
        root: Path or URI of the dataset.
        table: The table of the files.
        files: Their full paths or URIs.
        name: The name of the view; by default that of the table.
    """
    called = name or table.name
    if not files:
        opened.register(called, table.schema.empty_table())
    elif "://" in root:
        opened.register(called, fetched(f"{root}/{table.name}", table, files))
    else:
        opened.execute(f"CREATE VIEW {called} AS {parquet(table, files)}")


def fetched(uri: str, table: Table, files: Sequence[str]) -> ds.Dataset:
    """Read a table's files through Arrow.

    The dataset of `deltalake` itself is not used: if the log has no range for a column, it takes the column
    for null and skips rows in queries about it.
    """
    import pyarrow.dataset as ds  # it imports pandas, which takes a quarter of a second

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
