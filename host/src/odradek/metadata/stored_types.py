"""The types of stored values. SQLite does not enforce them, and a damaged file may have others."""

from __future__ import annotations

import sqlite3

from odradek.metadata.failure import in_one_line


def value_of_wrong_type(connection: sqlite3.Connection) -> str | None:
    """Find a value whose type is not the declared one of its column; return its place, or None."""
    tables = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
    for (table,) in tables:
        columns = connection.execute("select name, type from pragma_table_info(?)", (table,)).fetchall()
        for column, declared in columns:
            wrong = connection.execute(
                f'select typeof("{column}") from "{table}"'  # noqa: S608  the file's own schema
                f" where typeof(\"{column}\") not in (?, 'null') limit 1",
                (declared.lower(),),
            ).fetchone()
            if wrong is not None:
                return in_one_line(
                    f"column {column} of table {table} has a value of type {wrong[0]}, not {declared}"
                )
    return None
