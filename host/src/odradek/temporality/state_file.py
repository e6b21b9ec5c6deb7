"""The state of an engine in a SQLite file: totals and positions change in one transaction.

Only this module and `rebuild` touch a file; the engine knows neither of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from odradek.plugin import Origin
from odradek.temporality.engine import Engine
from odradek.temporality.shape import BadState
from odradek.temporality.totals_store import StoreFailed

SCHEMA_VERSION: Final = 1
SCHEMA: Final = """
create table position (topic_id text, partition integer, next_offset integer not null,
                       primary key (topic_id, partition)) without rowid;
create table shape (digest blob primary key, streams blob not null) without rowid;
create table client (instance_id blob primary key, state blob not null) without rowid;
"""
MARK: Final = "rebuild"
"""The table of a file without totals which asks to build them from the beginning of the log."""
FILES: Final = ("", "-wal", "-shm")
"""The endings of the files that SQLite makes of one database."""


class ForeignFile(BadState):
    """The file is another program's."""


class StateFile:
    """The `odradek.temporality.TotalsStore` of a process that reads the whole log: one file.

    Use it on the thread that has opened it; call `close` in the end.

    Args:
        path: The file. Its folder must exist.
    """

    parts = 1

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.advice = f"`odradek totals rebuild {path}` builds the totals again from the log"
        self.opened: sqlite3.Connection | None = None
        self.has_commits = False
        """This object has committed, so the file has no mark any more."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The open file; `open` on first use."""
        if self.opened is None:
            self.open()
        assert self.opened is not None
        return self.opened

    def open(self) -> None:
        """Open the file, and create it if it is missing.

        Raises:
            BadState: It is no state file, or was written by a newer version.
            StoreFailed: It cannot be opened.
        """
        self.close()
        with failures():
            self.opened = sqlite3.connect(self.path, isolation_level=None)
            self.prepare(self.opened)

    def prepare(self, connection: sqlite3.Connection) -> None:
        try:
            # FULL: after a power failure a total never goes back to a value below one that was sent.
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = full")
            self.create_tables(connection)
        except sqlite3.DatabaseError as error:
            self.close()
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise BadState(f"{self.path} is not a file of totals ({error}); {self.advice}") from error
            raise
        except BadState:
            self.close()
            raise

    def create_tables(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("pragma user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise BadState(
                f"{self.path} has version {version}, this program reads {SCHEMA_VERSION}; {self.advice}"
            )
        if version == 0:
            if connection.execute("select count(*) from sqlite_master").fetchone()[0]:
                raise ForeignFile(f"{self.path} is another program's database")
            connection.executescript(f"begin; {SCHEMA} pragma user_version = {SCHEMA_VERSION}; commit;")

    def part_of(self, position: Origin | None) -> int:
        """The only part."""
        return 0

    def load(self, engine: Engine, part: int = 0) -> None:
        """Let a new engine continue from the stored state.

        Raises:
            BadState: The state is damaged.
            StoreFailed: It cannot be read.
        """
        rows = self.connection.execute
        with failures():
            shapes = dict(rows("select digest, streams from shape"))
            clients = dict(rows("select instance_id, state from client"))
            positions = [
                Origin(*row) for row in rows("select topic_id, partition, next_offset from position")
            ]
        try:
            engine.restore(shapes, clients, positions)
        except BadState as error:
            raise BadState(f"the totals are damaged ({error}); {self.advice}") from error

    def commit(self, engine: Engine, part: int = 0) -> None:
        """Store the changes since the last commit, and the positions, in one transaction.

        Raises:
            StoreFailed: Nothing was stored. Replace the engine by a new one, and load that.
        """
        changes, positions = engine.take_changes()
        forgotten = [(instance_id,) for instance_id, state in changes.clients.items() if state is None]
        states = [(instance_id, state) for instance_id, state in changes.clients.items() if state is not None]
        with failures(), self.connection:
            self.connection.execute("begin immediate")
            run_many = self.connection.executemany
            run_many("delete from shape where digest = ?", [(digest,) for digest in changes.unused_shapes])
            run_many("insert or replace into shape values (?, ?)", list(changes.shapes.items()))
            run_many("delete from client where instance_id = ?", forgotten)
            run_many("insert or replace into client values (?, ?)", states)
            run_many("insert or replace into position values (?, ?, ?)", positions)
            if not self.has_commits:
                self.connection.execute(f"drop table if exists {MARK}")
        self.has_commits = True

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        if self.opened is not None:
            self.opened.close()
        self.opened = None


@contextmanager
def failures() -> Iterator[None]:
    """Turn SQLite's errors into those of a store."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreFailed(str(error)) from error
