"""Share groups in the metadata file: how far the delivery of each partition is (KIP-932).

The table is written through the connection of `SqliteOffsetStore`: a change that returns survives the end
of the process, kill -9 included.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

SCHEMA = """
create table if not exists share_partitions (
    group_id text not null, topic_id blob not null, partition integer not null,
    start_offset integer not null, completed integer not null, spans blob not null,
    primary key (group_id, topic_id, partition)
) without rowid;
delete from share_partitions where group_id not in (select group_id from groups where type = 'share');
"""
"""A release without this table may have deleted a group, or made it another kind of."""
SharePartitionKey = tuple[str, bytes, int]
"""Group, topic id, partition."""
SharePartitionRow = tuple[str, bytes, int, int, int, bytes]
"""Group, topic id, partition, start offset (-1 if nothing was delivered yet), how many records from there on
are done, and their states, in the form of the room `share`."""


class SqliteShareStore:
    """The table of share groups. Every call that changes something is one transaction, or a part of the one
    that is open.

    Args:
        connection: That of the store of groups and offsets.
        transaction: Its transactions.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        transaction: Callable[[], AbstractContextManager[sqlite3.Connection]],
    ) -> None:
        self.connection = connection
        self.transaction = transaction
        self.connection.executescript(SCHEMA)

    def share_partitions(self) -> Iterable[SharePartitionRow]:
        """The partitions that share groups know: those that a group may read, each with its state."""
        rows: Iterable[SharePartitionRow] = self.connection.execute(
            "select group_id, topic_id, partition, start_offset, completed, spans from share_partitions"
        )
        return rows

    def share_partition(self, group_id: str, topic_id: bytes, partition: int) -> SharePartitionRow | None:
        """One partition of a group; None if the group does not know it."""
        row: SharePartitionRow | None = self.connection.execute(
            "select group_id, topic_id, partition, start_offset, completed, spans from share_partitions"
            " where group_id = ? and topic_id = ? and partition = ?",
            (group_id, topic_id, partition),
        ).fetchone()
        return row

    def put_share_partitions(self, rows: Iterable[SharePartitionRow]) -> None:
        """Set the state of partitions."""
        with self.transaction() as connection:
            connection.executemany("insert or replace into share_partitions values (?, ?, ?, ?, ?, ?)", rows)

    def delete_share_partitions(self, keys: Iterable[SharePartitionKey]) -> None:
        """Forget partitions."""
        with self.transaction() as connection:
            connection.executemany(
                "delete from share_partitions where group_id = ? and topic_id = ? and partition = ?", keys
            )

    def delete_share_topics(self, topic_ids: Sequence[bytes]) -> None:
        """Forget all partitions of topics."""
        with self.transaction() as connection:
            connection.executemany(
                "delete from share_partitions where topic_id = ?", [(topic_id,) for topic_id in topic_ids]
            )

    def delete_share_group(self, group_id: str) -> None:
        """Forget all partitions of a group."""
        with self.transaction() as connection:
            connection.execute("delete from share_partitions where group_id = ?", (group_id,))
