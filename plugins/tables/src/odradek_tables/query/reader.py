"""The current version of a dataset's tables in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.duckdb_files import add_table, connection
from odradek_tables.log import CLOCK_SKEW_MAX, paths_between
from odradek_tables.query.views import LONGEST_RETRY, NEAR_PUSHES, RETRY_INTERVALS, VIEWS
from odradek_tables.schemas import ANOMALIES, BY_NAME, PUSHES, Table


class Reader:
    """A DuckDB connection with the tables under their names, and the views.

    Args:
        root: Path or URI of the dataset.
        since: Leave out older rows, by the table's `Table.time`; with a time zone. Anomalies that began
            earlier are included.
        until: Leave out rows from this time on.

    Raises:
        DatasetError: The dataset does not exist.
    """

    def __init__(self, root: str, since: datetime | None = None, until: datetime | None = None) -> None:
        self.dataset = Dataset(root)
        if self.dataset.open(PUSHES) is None:
            raise DatasetError(f"{root}: no dataset: check the path, and ingest into it first")
        self.since, self.until = since, until
        self.connection = connection()
        for table in BY_NAME.values():
            self.add(table, None if table is ANOMALIES else since, until)
        self.add_near_pushes()
        for name, query in VIEWS.items():
            self.connection.execute(f"CREATE VIEW {name} AS {query}")

    def add(self, table: Table, since: datetime | None, until: datetime | None) -> None:
        """Add the rows of a table; a table that no job has created yet is empty."""
        if since is not None and table.bucket_s:
            since -= timedelta(seconds=table.bucket_s, microseconds=-1)  # the bucket that has this time
        if since is None and until is None:
            add_table(self.connection, self.dataset.root, table, self.paths(table))
            return
        whole = f"all_{table.name}"
        add_table(self.connection, self.dataset.root, table, self.paths(table, since, until), whole)
        self.connection.execute(
            f"CREATE VIEW {table.name} AS FROM {whole} WHERE {between(table.time, since, until)}"
        )

    def add_near_pushes(self) -> None:
        """Add the pushes of the points in the time range, and those that these may repeat."""
        first = None if self.since is None else self.since - CLOCK_SKEW_MAX
        last = None if self.until is None else self.until + CLOCK_SKEW_MAX
        files = self.paths(PUSHES, None if first is None else first - LONGEST_RETRY, last)
        add_table(self.connection, self.dataset.root, PUSHES, files, "early_pushes")
        near = "true" if first is None else near_condition(self.connection, "early_pushes", first)
        self.connection.execute(f"CREATE VIEW {NEAR_PUSHES} AS FROM early_pushes WHERE {near}")

    def paths(self, table: Table, since: datetime | None = None, until: datetime | None = None) -> list[str]:
        found = self.dataset.open(table)
        return [] if found is None else paths_between(found, table.time, since, until)

    def ask(self, query: str, values: Sequence[object] = ()) -> pa.Table:
        """Run a query and return its rows; none for a statement without a result.

        Raises:
            duckdb.Error: The query is invalid.
        """
        answered: Any = self.connection.sql(query, params=list(values))
        return pa.table({}) if answered is None else answered.to_arrow_table()

    def names(self, table: str, column: str) -> list[str]:
        """The values of a column of texts in the time range, in order."""
        rows = self.ask(f"SELECT DISTINCT {column} AS name FROM {table} WHERE {column} IS NOT NULL")
        return sorted(rows["name"].to_pylist())

    def close(self) -> None:
        self.connection.close()


def between(column: str, since: datetime | None, until: datetime | None) -> str:
    bounds = [f"{column} >= {timestamp(since)}"] if since is not None else []
    bounds += [f"{column} < {timestamp(until)}"] if until is not None else []
    return " AND ".join(bounds) or "true"


def near_condition(opened: duckdb.DuckDBPyConnection, pushes: str, since: datetime) -> str:
    """SQL condition for pushes since a time, and those that they may repeat: two intervals before."""
    (interval_ms,) = opened.execute(
        f"SELECT max(push_interval_ms) FROM {pushes} WHERE recv_ts >= {timestamp(since)}"
    ).fetchone() or (None,)
    return f"recv_ts >= {timestamp(since)} - INTERVAL {RETRY_INTERVALS * (interval_ms or 0)} MILLISECOND"


def timestamp(at: datetime) -> str:
    return f"TIMESTAMPTZ '{at.isoformat()}'"
