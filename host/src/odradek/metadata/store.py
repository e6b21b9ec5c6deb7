"""The file behind everything an operator sets: topics, configurations, ids. One transaction per request.

WAL mode with full synchronization: what was answered survives a power cut. Reads are rare (start, describe),
so rooms that need a value per request keep their own copy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCHEMA_VERSION = 1
SCHEMA = """
create table host (key text primary key, value text not null) without rowid;
create table topics (name text primary key, id blob not null unique, partitions integer not null) without
rowid; create table configs (
    resource_type integer not null, resource_name text not null, key text not null, value text not null,
    primary key (resource_type, resource_name, key)
) without rowid;
"""
OWNER_ONLY = 0o600
"""There are credentials in the file."""
PRODUCER_ID_BLOCK = 1000  # ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE in Kafka: one write for so many producers


class StoreError(Exception):
    """The file cannot be used: not ours, or of a newer version."""


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic as it is stored."""

    name: str
    id: bytes
    partitions: int


class MetadataStore:
    """One open metadata file.

    Args:
        path: The file; ``:memory:`` keeps everything in memory.

    Raises:
        StoreError: The file is damaged or of a version that this code does not know.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = path
        try:
            if path != ":memory:":
                Path(path).touch(OWNER_ONLY)  # SQLite gives the files beside it the same mode
            self.connection = sqlite3.connect(path, isolation_level=None)
        except (sqlite3.DatabaseError, OSError) as error:
            raise StoreError(f"{path}: {error}") from error
        try:
            self.prepare()
        except sqlite3.DatabaseError as error:
            self.connection.close()
            raise StoreError(f"{path}: {error}") from error
        except StoreError:
            self.connection.close()
            raise
        self.next_producer_id = self.end_of_producer_ids = 0

    def prepare(self) -> None:
        """Make the tables of a new file, and check the version of an old one."""
        self.connection.execute("pragma journal_mode = wal")
        self.connection.execute("pragma synchronous = full")
        (version,) = self.connection.execute("pragma user_version").fetchone()
        if version == 0:
            with self.transaction():
                for statement in SCHEMA.split(";"):
                    self.connection.execute(statement)
                self.connection.execute(f"pragma user_version = {SCHEMA_VERSION}")
        elif version != SCHEMA_VERSION:
            raise StoreError(f"{self.path}: version {version}, this host reads version {SCHEMA_VERSION}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Inside another transaction it is a part of that one, which may fail alone."""
        if self.connection.in_transaction:
            begin, commit, undo = "savepoint part", "release part", ["rollback to part", "release part"]
        else:
            begin, commit, undo = "begin immediate", "commit", ["rollback"]
        self.connection.execute(begin)
        try:
            yield
            self.connection.execute(commit)
        except BaseException:
            # a full disk makes SQLite roll back everything by itself
            for statement in undo if self.connection.in_transaction else []:
                self.connection.execute(statement)
            raise

    def close(self) -> None:
        """Close the file; harmless twice."""
        self.connection.close()

    def value(self, key: str) -> str | None:
        """One of the host's own values, such as its cluster id."""
        row = self.connection.execute("select value from host where key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put_value(self, key: str, value: str) -> None:
        """Set one of the host's own values."""
        self.connection.execute("insert or replace into host values (?, ?)", (key, value))

    def topics(self) -> list[TopicRow]:
        """All topics, by name."""
        rows = self.connection.execute("select name, id, partitions from topics order by name")
        return [TopicRow(name, bytes(topic_id), partitions) for name, topic_id, partitions in rows]

    def put_topic(self, topic: TopicRow) -> None:
        """Create a topic or change its number of partitions."""
        self.connection.execute(
            "insert or replace into topics values (?, ?, ?)", (topic.name, topic.id, topic.partitions)
        )

    def delete_topic(self, name: str) -> None:
        """Forget a topic."""
        self.connection.execute("delete from topics where name = ?", (name,))

    def resource_names(self, resource_type: int) -> list[str]:
        """Names of the resources of a type that have at least one key set."""
        rows = self.connection.execute(
            "select distinct resource_name from configs where resource_type = ? order by 1", (resource_type,)
        )
        return [name for (name,) in rows]

    def resource(self, resource_type: int, name: str) -> dict[str, str]:
        """The keys that are set on one resource; empty when it is unknown."""
        rows = self.connection.execute(
            "select key, value from configs where resource_type = ? and resource_name = ?",
            (resource_type, name),
        )
        return dict(rows.fetchall())

    def put_resource(self, resource_type: int, name: str, properties: Mapping[str, str]) -> None:
        """Make ``properties`` the complete set of keys of a resource; none removes it."""
        with self.transaction():
            self.connection.execute(
                "delete from configs where resource_type = ? and resource_name = ?", (resource_type, name)
            )
            self.connection.executemany(
                "insert into configs values (?, ?, ?, ?)",
                [(resource_type, name, key, value) for key, value in properties.items()],
            )

    def allocate_producer_id(self) -> int:
        """A producer id that was never given out, also not before a crash."""
        if self.next_producer_id == self.end_of_producer_ids:
            start = int(self.value("next.producer.id") or 0)
            self.put_value("next.producer.id", str(start + PRODUCER_ID_BLOCK))
            self.next_producer_id, self.end_of_producer_ids = start, start + PRODUCER_ID_BLOCK
        self.next_producer_id += 1
        return self.next_producer_id - 1
