"""The current version of a dataset's tables in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from odradek_spark.query.views import VIEWS
from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.duckdb_files import add_table, connection
from odradek_spark.tables.log import file_paths
from odradek_spark.tables.schemas import BY_NAME, PUSHES, ROLLUP_1H, Table

CLOCK_SKEW_MAX = timedelta(minutes=15)
"""Largest difference between the time of a point and its receive time, by which tables are partitioned."""
TWO_INTERVALS = timedelta(hours=2)
"""`interval.ms` is at most an hour (KIP-714)."""


class Reader:
    """A DuckDB connection with the tables under their names, and the views.

    Args:
        root: Path or URI of the dataset.
        since: Leave out files with only older rows.
        until: Leave out files with only newer rows.

    Raises:
        DatasetError: The dataset does not exist.
    """

    def __init__(self, root: str, since: datetime | None = None, until: datetime | None = None) -> None:
        self.dataset = Dataset(root)
        if self.dataset.open(PUSHES) is None:
            raise DatasetError(f"{root}: no dataset: check the path, and ingest into it first")
        self.connection = connection()
        for table in BY_NAME.values():
            self.add(table, since, until)
        for name, query in VIEWS.items():
            self.connection.execute(f"CREATE VIEW {name} AS {query}")

    def add(self, table: Table, since: datetime | None, until: datetime | None) -> None:
        """Add a table; a table that no job has created yet is empty."""
        found = self.dataset.open(table)
        files = [] if found is None else file_paths(found, days(table, since, until))
        add_table(self.connection, self.dataset.root, table, files)

    def ask(self, query: str, values: Sequence[object] = ()) -> pa.Table:
        """Run a query and return its rows; none for a statement without a result.

        Raises:
            duckdb.Error: The query is invalid.
        """
        answered: Any = self.connection.sql(query, params=list(values))
        return pa.table({}) if answered is None else answered.to_arrow_table()

    def close(self) -> None:
        """Close the connection and its files."""
        self.connection.close()


def days(table: Table, since: datetime | None, until: datetime | None) -> list[tuple[str, str, str]]:
    """Conditions for the partitions that may have rows of a time range.

    They reach back two push intervals, because a push may repeat one of then. ``rollup_1h`` is always read
    from its first hour, where totals begin.
    """
    if "date" not in table.partitions:
        return []
    found = []
    if since is not None and table is not ROLLUP_1H:
        found.append(("date", ">=", f"{(since - CLOCK_SKEW_MAX - TWO_INTERVALS).astimezone(UTC):%Y-%m-%d}"))
    if until is not None:
        found.append(("date", "<=", f"{(until + CLOCK_SKEW_MAX).astimezone(UTC):%Y-%m-%d}"))
    return found
