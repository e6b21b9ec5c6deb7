"""Upgrades of existing tables, and the columns whose statistics a table's files have, as a property.

Without the property, ``deltalake`` expects statistics of the first columns. It takes a column without them
for null, so readers with a filter on that column skip every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from deltalake import DeltaTable, Schema

from odradek_tables.schemas import Table

RANGED = ("recv_ts", "ts", "src_offset")
"""Columns whose minimum and maximum are stored for each file, so that readers can skip files.

Every file of every version has them. A column that only newer files have must not be added: readers with a
filter on it would skip the older files.
"""
COLUMNS, FIRST = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
"""Properties of Delta: the names of the columns with statistics, and their number from the first one."""


def ranged(table: Table) -> list[str]:
    """The columns of a table whose ranges its files have."""
    return [name for name in RANGED if name in table.file_schema.names]


def statistics_properties(columns: Iterable[str]) -> Mapping[str, str]:
    """The properties of a table whose files have statistics of some columns only."""
    names = ",".join(columns)
    return {COLUMNS: names} if names else {FIRST: "0"}


def upgrade(current: DeltaTable, table: Table) -> bool:
    """Add the property and new columns to a table of an older version, each in a commit of its own.

    Returns:
        Whether something was missing, so that the table has a newer version now.

    Raises:
        CommitFailedError: Another writer committed first.
    """
    if table.added:
        known = {each.name for each in current.schema().fields}
        missing = pa.schema([table.schema.field(name) for name in table.added if name not in known])
        if missing.names:
            current.alter.add_columns(Schema.from_arrow(missing).fields)
            return True
    if {COLUMNS, FIRST} & set(current.metadata().configuration):
        return False
    current.alter.set_table_properties(dict(statistics_properties(ranged(table))))
    return True
