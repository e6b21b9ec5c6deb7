"""One transaction of a connection to the metadata file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


@contextmanager
def transaction(connection: sqlite3.Connection, code: ErrorCode) -> Iterator[None]:
    """Apply all changes of the block or none. A nested block may fail without failing the outer one.

    Args:
        connection: A connection that starts no transaction itself.
        code: The answer to clients while the file cannot be written.

    Raises:
        ApiError: ``code``, with SQLite's reason.
    """
    if connection.in_transaction:
        begin, commit, undo = "savepoint part", "release part", ["rollback to part", "release part"]
    else:
        begin, commit, undo = "begin immediate", "commit", ["rollback"]
    try:
        connection.execute(begin)
        try:
            yield
            connection.execute(commit)
        except BaseException:
            # On a full disk SQLite may have rolled back everything, the outer blocks too.
            for statement in undo if connection.in_transaction else []:
                connection.execute(statement)
            raise
    except sqlite3.Error as error:
        raise ApiError(code, f"the metadata file: {error}") from error
