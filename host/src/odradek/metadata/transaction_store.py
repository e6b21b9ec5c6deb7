"""Transactional ids and their states in the metadata file, through a separate connection.

A commit is not synchronized, like the records themselves: a stored state survives kill -9, and a power
failure may lose the last moments of both.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from odradek.metadata.failure import MetadataFailures, failing_as
from odradek.metadata.store import WAL_PAGES, StoreError
from odradek.metadata.transaction import transaction

SCHEMA = "create table if not exists transactions (transactional_id text primary key, state text not null)"


class SqliteTransactionStore:
    """The table of transactions.

    Args:
        path: The metadata file; ``:memory:`` for a separate store in memory.
        failures: The log of failures of the file, shared by its stores.

    Raises:
        StoreError: The file cannot be used.
        MetadataFailure: COORDINATOR_NOT_AVAILABLE from every method: the file cannot be read or written.
    """

    def __init__(self, path: Path | str, failures: MetadataFailures | None = None) -> None:
        self.failures = failures or MetadataFailures(path)
        try:
            self.connection = sqlite3.connect(path, isolation_level=None)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path}: {error}") from error
        try:
            self.connection.execute("pragma journal_mode = wal")
            self.connection.execute("pragma synchronous = normal")
            self.connection.execute(f"pragma wal_autocheckpoint = {WAL_PAGES}")
            self.connection.execute(f"{SCHEMA} without rowid")
        except sqlite3.DatabaseError as error:
            self.connection.close()
            raise StoreError(f"{path}: {error}") from error

    def transactions(self) -> list[tuple[str, str]]:
        """All ids and their states, as passed to `put_transaction`."""
        with failing_as(self.failures.unavailable):
            return self.connection.execute("select transactional_id, state from transactions").fetchall()

    def put_transaction(self, transactional_id: str, text: str) -> None:
        """Set the state of an id."""
        with failing_as(self.failures.unavailable):
            self.connection.execute(
                "insert or replace into transactions values (?, ?)", (transactional_id, text)
            )

    def delete_transactions(self, transactional_ids: Iterable[str]) -> None:
        """Delete ids, all or none."""
        rows = [(transactional_id,) for transactional_id in transactional_ids]
        with transaction(self.connection, self.failures.unavailable):
            self.connection.executemany("delete from transactions where transactional_id = ?", rows)

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self.connection.close()
