"""Transactional ids and their states in the metadata file, through a separate connection.

A commit is not synchronized, like the records themselves: a stored state survives kill -9, and a power
failure may lose the last moments of both.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from odradek.metadata.failure import MetadataFailures, failing_as
from odradek.metadata.store import connected
from odradek.metadata.transaction import transaction

SCHEMA = """
create table if not exists transactions (transactional_id text primary key, state text not null) without rowid
"""


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
        self.connection = connected(path, SCHEMA)

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
