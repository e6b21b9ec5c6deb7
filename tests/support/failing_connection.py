"""A connection to SQLite that fails at will."""

from __future__ import annotations

import sqlite3
from typing import Any


class FailingConnection:
    """A connection on which one statement fails, as on a full disk."""

    def __init__(self, connection: sqlite3.Connection, failing: str, *, rolls_back: bool) -> None:
        self.connection = connection
        self.failing = failing
        self.rolls_back = rolls_back

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        if statement == self.failing:
            if self.rolls_back:
                self.connection.execute("rollback")
            raise sqlite3.OperationalError("database or disk is full")
        return self.connection.execute(statement, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


class UnreadableConnection:
    """A connection on which every query fails, as on a broken disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        if statement.startswith("select"):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
            raise error
        return self.connection.execute(statement, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)
