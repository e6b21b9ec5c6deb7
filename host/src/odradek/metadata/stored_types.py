"""The types of stored values. SQLite does not enforce them, and a damaged file may have others."""

from __future__ import annotations

import sqlite3

from odradek.metadata.failure import in_one_line


def value_of_wrong_type(connection: sqlite3.Connection) -> str | None:
    """Find a value whose type is not the declared one of its column; return its place, or None."""
    tables = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
    for (table,) in tables:
        columns = connection.execute("select name, type from pragma_table_info(?)", (table,)).fetchall()
        # All columns at once: of a single one, SQLite would read the copy in an index, which may be intact.
        types = ", ".join(f'typeof("{column}")' for column, _ in columns)
        for row in connection.execute(f'select distinct {types} from "{table}"'):  # noqa: S608  of the file
            for found, (column, declared) in zip(row, columns, strict=True):
                if found not in (declared.lower(), "null"):
                    return in_one_line(
                        f"column {column} of table {table} has a value of type {found}, not {declared}"
                    )
    return None
