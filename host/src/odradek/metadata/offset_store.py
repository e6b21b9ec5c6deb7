"""Groups and committed offsets in the metadata file.

The store has its own connection with ``synchronous = normal``. A commit that returns is in the write-ahead
log, so it survives the end of the process, kill -9 included. A power failure may lose the last commits;
consumers then read those records again. As the write-ahead log is one file, each fully synchronized write of
`MetadataStore` also flushes all earlier offsets.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from odradek.metadata.failure import MetadataFailures
from odradek.metadata.share_store import SqliteShareStore
from odradek.metadata.store import connected
from odradek.metadata.transaction import transaction

SCHEMA = """
create table if not exists group_offsets (
    group_id text not null, topic_id blob not null, partition integer not null,
    committed_offset integer not null, leader_epoch integer not null, metadata text not null,
    commit_ms integer not null, expire_ms integer, primary key (group_id, topic_id, partition)
) without rowid;
create table if not exists pending_group_offsets (
    producer_id integer not null, group_id text not null, topic_id blob not null, partition integer not null,
    committed_offset integer not null, leader_epoch integer not null, metadata text not null,
    commit_ms integer not null, expire_ms integer, primary key (producer_id, group_id, topic_id, partition)
) without rowid;
create table if not exists groups (
    group_id text primary key, type text not null, protocol_type text not null, generation integer not null,
    empty_since_ms integer
) without rowid;
create table if not exists group_states (group_id text primary key, state text not null) without rowid;
create table if not exists group_members (
    group_id text not null, member_id text not null, state text not null, primary key (group_id, member_id)
) without rowid;
"""
STRAYS = "group_id not in (select group_id from groups where type in ('share', 'streams'))"
"""Rows of groups that a release without these tables has deleted or made another kind of."""
SCHEMA += f"delete from group_states where {STRAYS}; delete from group_members where {STRAYS};"  # noqa: S608
COLUMNS = "group_id, topic_id, partition, committed_offset, leader_epoch, metadata, commit_ms, expire_ms"
GROUP_TABLES = ("groups", "group_states", "group_members", "group_offsets", "pending_group_offsets")
OFFSET_KEY = "group_id = ? and topic_id = ? and partition = ?"


OffsetRow = tuple[str, bytes, int, int, int, str, int, int | None]
"""Group, topic id, partition, offset, leader epoch, metadata, commit time, expiry time (or None)."""
OffsetKey = tuple[str, bytes, int]
"""Group, topic id, partition."""
GroupRow = tuple[str, str, str, int, int | None]
"""Group, type, protocol type, generation, empty since (or None)."""
GroupStateRow = tuple[str, str]
"""Group, and its state as JSON."""
MemberRow = tuple[str, str, str]
"""Group, member, and the state of the member as JSON."""


class SqliteOffsetStore:
    """A separate connection to the metadata file. Every call that changes something is one transaction.

    Args:
        path: The file of `MetadataStore`; ``:memory:`` keeps everything in memory.
        failures: The log of failures of the file, shared by its stores.

    Raises:
        StoreError: The file cannot be used.
    """

    def __init__(self, path: Path | str, failures: MetadataFailures | None = None) -> None:
        self.failures = failures or MetadataFailures(path)
        self.connection = connected(path, SCHEMA)
        self.shares = SqliteShareStore(self.connection, self.transaction)

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Apply all changes of the block or none.

        Raises:
            MetadataFailure: COORDINATOR_NOT_AVAILABLE: the file cannot be written now. Clients retry.
        """
        with transaction(self.connection, self.failures.unavailable):
            yield self.connection

    def offsets(self) -> Iterable[OffsetRow]:
        """All committed offsets."""
        rows: Iterable[OffsetRow] = self.connection.execute(f"select {COLUMNS} from group_offsets")  # noqa: S608
        return rows

    def pending(self) -> Iterator[tuple[int, OffsetRow]]:
        """All offsets of open transactions, with their producer ids."""
        rows = self.connection.execute(f"select producer_id, {COLUMNS} from pending_group_offsets")  # noqa: S608
        for producer_id, *row in rows:
            group_id, topic_id, partition, offset, leader_epoch, metadata, commit_ms, expire_ms = row
            yield (
                producer_id,
                (group_id, topic_id, partition, offset, leader_epoch, metadata, commit_ms, expire_ms),
            )

    def groups(self) -> Iterable[GroupRow]:
        rows: Iterable[GroupRow] = self.connection.execute(
            "select group_id, type, protocol_type, generation, empty_since_ms from groups"
        )
        return rows

    def group_states(self) -> Iterable[GroupStateRow]:
        """What is stored of groups that are kept with their members."""
        rows: Iterable[GroupStateRow] = self.connection.execute("select group_id, state from group_states")
        return rows

    def group_members(self) -> Iterable[MemberRow]:
        """The members of these groups."""
        rows: Iterable[MemberRow] = self.connection.execute(
            "select group_id, member_id, state from group_members"
        )
        return rows

    def put_offsets(
        self, rows: Iterable[OffsetRow], superseded: Iterable[tuple[int, OffsetKey]] = ()
    ) -> None:
        """Set committed offsets and delete the pending offsets that they supersede."""
        with self.transaction() as connection:
            write_offsets(connection, rows)
            connection.executemany(
                f"delete from pending_group_offsets where producer_id = ? and {OFFSET_KEY}",  # noqa: S608
                [(producer_id, *key) for producer_id, key in superseded],
            )

    def delete_offsets(self, keys: Iterable[OffsetKey]) -> None:
        """Delete committed offsets."""
        with self.transaction() as connection:
            connection.executemany(f"delete from group_offsets where {OFFSET_KEY}", keys)  # noqa: S608

    def put_pending(self, rows: Iterable[tuple[int, OffsetRow]]) -> None:
        """Set offsets of open transactions."""
        with self.transaction() as connection:
            connection.executemany(
                "insert or replace into pending_group_offsets values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(producer_id, *row) for producer_id, row in rows],
            )

    def complete(self, producer_id: int, group_id: str, committed: Iterable[OffsetRow]) -> None:
        """Complete a transaction: delete the pending offsets and set the committed ones."""
        with self.transaction() as connection:
            connection.execute(
                "delete from pending_group_offsets where producer_id = ? and group_id = ?",
                (producer_id, group_id),
            )
            write_offsets(connection, committed)

    def delete_topics(self, topic_ids: Sequence[bytes]) -> None:
        """Delete all offsets of topics, pending ones too."""
        with self.transaction() as connection:
            for topic_id in topic_ids:
                connection.execute("delete from group_offsets where topic_id = ?", (topic_id,))
                connection.execute("delete from pending_group_offsets where topic_id = ?", (topic_id,))

    def put_group(
        self,
        row: GroupRow,
        state: str | None = None,
        members: Iterable[MemberRow] = (),
        gone: Iterable[str] = (),
    ) -> None:
        """Set one group.

        Args:
            row: The group.
            state: What else is to be kept of it; None leaves it as it is.
            members: Its members that are new or have changed.
            gone: The ids of members that have left.
        """
        with self.transaction() as connection:
            connection.execute("insert or replace into groups values (?, ?, ?, ?, ?)", row)
            if state is not None:
                connection.execute("insert or replace into group_states values (?, ?)", (row[0], state))
            connection.executemany("insert or replace into group_members values (?, ?, ?)", members)
            connection.executemany(
                "delete from group_members where group_id = ? and member_id = ?",
                [(row[0], member_id) for member_id in gone],
            )

    def delete_group(self, group_id: str) -> None:
        """Delete a group with its members, all its offsets and the delivery states of a share group."""
        with self.transaction() as connection:
            self.shares.delete_share_group(group_id)
            for table in GROUP_TABLES:
                connection.execute(f"delete from {table} where group_id = ?", (group_id,))  # noqa: S608


def write_offsets(connection: sqlite3.Connection, rows: Iterable[OffsetRow]) -> None:
    """Set committed offsets within a transaction."""
    connection.executemany("insert or replace into group_offsets values (?, ?, ?, ?, ?, ?, ?, ?)", rows)
