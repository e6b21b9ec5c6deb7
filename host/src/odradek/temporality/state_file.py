"""The state of an engine in a SQLite file: totals and positions change in one transaction.

This is the only module of the room that touches a file; the engine does not know it.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from odradek.plugin import Origin
from odradek.temporality.engine import Engine
from odradek.temporality.shape import BadState

SCHEMA_VERSION: Final = 1
SCHEMA: Final = """
create table position (topic_id text, partition integer, next_offset integer not null,
                       primary key (topic_id, partition)) without rowid;
create table shape (digest blob primary key, streams blob not null) without rowid;
create table client (instance_id blob primary key, state blob not null) without rowid;
"""


class StateFile:
    """One open file. Use it on the thread that has opened it; call `close` in the end."""

    def __init__(self, path: Path) -> None:
        """Open the file, and create it if it is missing. Its folder must exist.

        Raises:
            BadState: It is no state file, or was written by a newer version.
            sqlite3.Error: It cannot be opened.
        """
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        try:
            # FULL: after a power failure a total never goes back to a value below one that was sent.
            self.connection.execute("pragma journal_mode = wal")
            self.connection.execute("pragma synchronous = full")
            self.create_tables()
        except sqlite3.DatabaseError as error:
            self.close()
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise BadState(f"{path} is not a file of totals: {error}") from error
            raise
        except BadState:
            self.close()
            raise

    def create_tables(self) -> None:
        (version,) = self.connection.execute("pragma user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise BadState(f"{self.path} has version {version}, this program reads {SCHEMA_VERSION}")
        if version == 0:
            if self.connection.execute("select count(*) from sqlite_master").fetchone()[0]:
                raise BadState(f"{self.path} is another program's database")
            self.connection.executescript(f"begin; {SCHEMA} pragma user_version = {SCHEMA_VERSION}; commit;")

    def load(self, engine: Engine) -> None:
        """Let a new engine continue from the stored state.

        Raises:
            BadState: The state is damaged.
            sqlite3.Error: It cannot be read.
        """
        rows = self.connection.execute
        engine.restore(
            dict(rows("select digest, streams from shape")),
            dict(rows("select instance_id, state from client")),
            [Origin(*row) for row in rows("select topic_id, partition, next_offset from position")],
        )

    def commit(self, engine: Engine) -> None:
        """Store what has changed since the last commit, and the positions, in one transaction.

        Raises:
            sqlite3.Error: Nothing was stored. The engine has to be replaced by one that is loaded again.
        """
        changes, positions = engine.take_changes()
        run, run_many = self.connection.execute, self.connection.executemany
        forgotten = [(instance_id,) for instance_id, state in changes.clients.items() if state is None]
        states = [(instance_id, state) for instance_id, state in changes.clients.items() if state is not None]
        run("begin immediate")
        try:
            run_many("delete from shape where digest = ?", [(digest,) for digest in changes.unused_shapes])
            run_many("insert or replace into shape values (?, ?)", list(changes.shapes.items()))
            run_many("delete from client where instance_id = ?", forgotten)
            run_many("insert or replace into client values (?, ?)", states)
            run_many("insert or replace into position values (?, ?, ?)", positions)
            run("commit")
        except BaseException:
            with suppress(sqlite3.Error):
                run("rollback")
            raise

    def close(self) -> None:
        """Close the file."""
        self.connection.close()
