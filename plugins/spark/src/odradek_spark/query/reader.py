"""The tables of a dataset in DuckDB, as they are at this moment."""

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
"""How far the time of a point may be from the receive time that the folders are named after."""
TWO_INTERVALS = timedelta(hours=2)
"""`interval.ms` is at most an hour (KIP-714)."""


class Reader:
    """A DuckDB connection with the tables under their names, and the views.

    Args:
        root: Path or URI of the dataset.
        since: Files that are older need not be there.
        until: Nor those that are newer.

    Raises:
        DatasetError: There is no dataset.
    """

    def __init__(self, root: str, since: datetime | None = None, until: datetime | None = None) -> None:
        self.dataset = Dataset(root)
        if self.dataset.open(PUSHES) is None:
            raise DatasetError(f"{root}: no dataset is there; has anything been ingested?")
        self.connection = connection()
        for table in BY_NAME.values():
            self.add(table, since, until)
        for name, query in VIEWS.items():
            self.connection.execute(f"CREATE VIEW {name} AS {query}")

    def add(self, table: Table, since: datetime | None, until: datetime | None) -> None:
        """Make a table known; one that no job has made yet is empty."""
        found = self.dataset.open(table)
        files = [] if found is None else file_paths(found, days(table, since, until))
        add_table(self.connection, self.dataset.root, table, files)

    def ask(self, query: str, values: Sequence[object] = ()) -> pa.Table:
        """The rows of a query; a statement that answers nothing has none.

        Raises:
            duckdb.Error: The query is wrong.
        """
        answered: Any = self.connection.sql(query, params=list(values))
        return pa.table({}) if answered is None else answered.to_arrow_table()

    def close(self) -> None:
        """Let go of the files."""
        self.connection.close()


def days(table: Table, since: datetime | None, until: datetime | None) -> list[tuple[str, str, str]]:
    """Which folders may have rows of the time. A push that its own repeats is at most two intervals older;
    totals, which ``rollup_1h`` is for, begin with its first hour whatever is asked.
    """
    if "date" not in table.partitions:
        return []
    found = []
    if since is not None and table is not ROLLUP_1H:
        found.append(("date", ">=", f"{(since - CLOCK_SKEW_MAX - TWO_INTERVALS).astimezone(UTC):%Y-%m-%d}"))
    if until is not None:
        found.append(("date", "<=", f"{(until + CLOCK_SKEW_MAX).astimezone(UTC):%Y-%m-%d}"))
    return found
