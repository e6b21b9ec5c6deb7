"""One transaction of a connection to the metadata file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from odradek.metadata.failure import Failed, failing_as


@contextmanager
def transaction(connection: sqlite3.Connection, failed: Failed) -> Iterator[None]:
    """Apply all changes of the block or none. A nested block may fail without failing the outer one.

    Args:
        connection: A connection that starts no transaction itself.
        failed: Makes the failure to raise.

    Raises:
        MetadataFailure: The file cannot be used now.
    """
    if connection.in_transaction:
        begin, commit, undo = "savepoint part", "release part", ["rollback to part", "release part"]
    else:
        begin, commit, undo = "begin immediate", "commit", ["rollback"]
    with failing_as(failed):
        connection.execute(begin)
        try:
            yield
            connection.execute(commit)
        except BaseException:
            # On a full disk SQLite may have rolled back everything, the outer blocks too.
            for statement in undo if connection.in_transaction else []:
                connection.execute(statement)
            raise
