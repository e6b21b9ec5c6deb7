"""The metadata file: topics, configurations and ids. Each request is one transaction.

It uses WAL mode with full synchronization, so a change that was answered survives a power failure. Reads are
rare (start, describe); code that needs a value for every request keeps its own copy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odradek.metadata.failure import MetadataFailure, MetadataFailures, failing_as
from odradek.metadata.schema import SCHEMA_VERSION, migrate, refusal, version_of
from odradek.metadata.stored_types import value_of_wrong_type
from odradek.metadata.transaction import transaction
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

OWNER_ONLY = 0o600
"""File mode, because the file contains credentials."""
CLUSTER_ID = "cluster.id"
"""The value of the host that holds the id of the cluster. Every host that has started has one."""
TRANSACTIONS_LOST = "transactions.lost"
"""The value of the host that says, if not empty, that the states of transactions are lost."""
WAL_PAGES = 16_384
"""Pages in the write-ahead log (64 MiB) at which a commit checkpoints it, waiting for the disk. The host
does that earlier, on a thread.
"""
PRODUCER_ID_BLOCK = 1000  # ids per write, as Kafka's ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE


class StoreError(Exception):
    """The file cannot be used: it is damaged, no metadata file, or of another version."""


def connected(path: Path | str, schema: str) -> sqlite3.Connection:
    """A connection whose commits are in the write-ahead log, but not synchronized.

    Raises:
        StoreError: The file cannot be used.
    """
    try:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = normal")
            connection.execute(f"pragma wal_autocheckpoint = {WAL_PAGES}")
            connection.executescript(schema)
        except sqlite3.DatabaseError:
            connection.close()
            raise
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path}: {error}") from error
    return connection


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One stored topic."""

    name: str
    id: bytes
    partitions: int


class MetadataStore:
    """An open metadata file.

    Args:
        path: The file; ``:memory:`` keeps everything in memory.
        clock: Paces the log of failures.
        read_only: Change nothing, also not the files beside it; for another process than the host.

    Raises:
        StoreError: The file is damaged or has a version that this host does not know.
    """

    def __init__(self, path: Path | str, clock: Clock | None = None, *, read_only: bool = False) -> None:
        self.path = path
        self.failures = MetadataFailures(path, clock)
        self._depth = 0
        """Transactions that are open within each other."""
        try:
            if path != ":memory:" and not read_only:
                Path(path).touch(OWNER_ONLY)  # SQLite gives its companion files the same mode
            target = f"{Path(path).absolute().as_uri()}?mode=ro" if read_only else path
            self.connection = sqlite3.connect(target, isolation_level=None, uri=read_only)
        except (sqlite3.DatabaseError, OSError) as error:
            raise StoreError(f"{path}: {error}") from error
        try:
            self.prepare(read_only)
        except (sqlite3.DatabaseError, ApiError) as error:
            self.connection.close()
            raise StoreError(f"{path}: {error}") from error
        except StoreError:
            self.connection.close()
            raise
        self.next_producer_id = self.end_of_producer_ids = 0

    def prepare(self, read_only: bool) -> None:
        """Refuse a newer file, before it is changed; bring an older or new one to this version."""
        version = version_of(self.connection)
        refused = refusal(version)
        if refused is not None:
            raise StoreError(f"{self.path} {refused}")
        if not read_only:
            self.connection.execute("pragma journal_mode = wal")
            self.connection.execute("pragma synchronous = full")
            self.connection.execute(f"pragma wal_autocheckpoint = {WAL_PAGES}")
        if version < SCHEMA_VERSION:
            if read_only:
                raise StoreError(
                    f"{self.path} has version {version} of the metadata format, not {SCHEMA_VERSION}:"
                    " start the host once, which migrates it"
                )
            with self.transaction():
                migrate(self.connection)
        wrong = value_of_wrong_type(self.connection)
        if wrong is not None:
            raise StoreError(f"{self.path}: {wrong}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Apply all changes of the block or none. A nested block may fail without failing the outer one,
        unless SQLite has rolled back both because the disk is full.

        Raises:
            MetadataFailure: KAFKA_STORAGE_ERROR: the file cannot be written now. Nothing of the block is
                stored.
        """
        if self._depth and not self.connection.in_transaction:
            raise MetadataFailure(ErrorCode.KAFKA_STORAGE_ERROR, "the transaction is rolled back")
        self._depth += 1
        try:
            with transaction(self.connection, self.failures.storage_error):
                yield
        finally:
            self._depth -= 1

    def read(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """All rows of a query.

        Raises:
            MetadataFailure: KAFKA_STORAGE_ERROR: the file cannot be read now.
        """
        with failing_as(self.failures.storage_error):
            return self.connection.execute(query, parameters).fetchall()

    def close(self) -> None:
        """Close the file; may be called twice."""
        self.connection.close()

    def value(self, key: str) -> str | None:
        """A value of the host itself, such as its cluster id; None if it is not set."""
        rows = self.read("select value from host where key = ?", (key,))
        return str(rows[0][0]) if rows else None

    def put_value(self, key: str, value: str) -> None:
        """Set a value of the host itself.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        with self.transaction():
            self.connection.execute("insert or replace into host values (?, ?)", (key, value))

    def topics(self) -> list[TopicRow]:
        """All topics, by name."""
        rows = self.read("select name, id, partitions from topics order by name")
        return [TopicRow(name, bytes(topic_id), partitions) for name, topic_id, partitions in rows]

    def put_topic(self, topic: TopicRow) -> None:
        """Create a topic or change its number of partitions."""
        self.connection.execute(
            "insert or replace into topics values (?, ?, ?)", (topic.name, topic.id, topic.partitions)
        )

    def delete_topic(self, name: str) -> None:
        self.connection.execute("delete from topics where name = ?", (name,))

    def resource_names(self, resource_type: int) -> list[str]:
        """Names of the resources of a type that have at least one key set."""
        rows = self.read(
            "select distinct resource_name from configs where resource_type = ? order by 1", (resource_type,)
        )
        return [name for (name,) in rows]

    def resource(self, resource_type: int, name: str) -> dict[str, str]:
        """The keys that are set on a resource; empty if it is unknown."""
        rows = self.read(
            "select key, value from configs where resource_type = ? and resource_name = ?",
            (resource_type, name),
        )
        return dict(rows)

    def put_resource(self, resource_type: int, name: str, properties: Mapping[str, str]) -> None:
        """Replace all keys of a resource by ``properties``; an empty mapping removes the resource."""
        with self.transaction():
            self.connection.execute(
                "delete from configs where resource_type = ? and resource_name = ?", (resource_type, name)
            )
            self.connection.executemany(
                "insert into configs values (?, ?, ?, ?)",
                [(resource_type, name, key, value) for key, value in properties.items()],
            )

    def allocate_producer_id(self) -> int:
        """Return a producer id that was never used, not even before a crash."""
        if self.next_producer_id == self.end_of_producer_ids:
            # The block is stored before its first id is used; a restart skips the rest of it.
            start = int(self.value("next.producer.id") or 0)
            self.put_value("next.producer.id", str(start + PRODUCER_ID_BLOCK))
            self.next_producer_id, self.end_of_producer_ids = start, start + PRODUCER_ID_BLOCK
        self.next_producer_id += 1
        return self.next_producer_id - 1
