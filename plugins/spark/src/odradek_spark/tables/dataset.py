"""A dataset: Delta tables under one root, committed by the library ``deltalake``.

A commit carries the number of the batch that it is (Delta's application transaction), so that a batch that
is run again is seen to be there already.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from odradek_spark.tables.files import Manifest
from odradek_spark.tables.schemas import INGESTED, Table

SOURCE_OFFSETS = "sourceOffsets"
COMMIT_ATTEMPTS = 20
"""Each one that fails was beaten by another writer, who got on."""
CHECKPOINT_INTERVAL = 10


class DatasetError(Exception):
    """The dataset cannot be used as it is; the message says what to do."""


class Dataset:
    """Tables under a root.

    Args:
        root: A local path, or a URI.
        storage_options: For ``deltalake``, where the root is a URI that needs them.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.root = root.rstrip("/")
        self.storage_options = dict(storage_options or {}) or None

    def uri(self, table: Table) -> str:
        """Where a table is."""
        return f"{self.root}/{table.name}"

    def create(self, tables: Sequence[Table] = INGESTED) -> None:
        """Make the tables that are not there.

        Raises:
            DatasetError: The root cannot be written, or holds something else.
        """
        for table in tables:
            try:
                DeltaTable.create(
                    self.uri(table),
                    table.schema,
                    mode="ignore",
                    partition_by=list(table.partitions),
                    configuration={"delta.checkpointInterval": str(CHECKPOINT_INTERVAL)},
                    storage_options=self.storage_options,
                )
            except Exception as error:
                raise DatasetError(f"{self.uri(table)}: cannot be made: {error}") from error

    def open(self, table: Table) -> DeltaTable | None:
        """A table as it is now; None if it is not there."""
        try:
            return DeltaTable(self.uri(table), storage_options=self.storage_options)
        except TableNotFoundError:
            return None

    def existing(self, table: Table) -> DeltaTable:
        """A table that has to be there.

        Raises:
            DatasetError: It is not.
        """
        found = self.open(table)
        if found is None:
            raise DatasetError(f"{self.uri(table)}: no such table; has anything been ingested?")
        return found

    def committed(self, table: Table, app_id: str) -> int | None:
        """The last batch that an application committed to a table."""
        found = self.open(table)
        return None if found is None else found.transaction_version(app_id)

    def commit(
        self,
        table: Table,
        manifests: Sequence[Manifest],
        app_id: str,
        version: int,
        info: Mapping[str, Any] | None = None,
    ) -> bool:
        """Make files visible, all at once.

        Args:
            table: Whose files they are.
            manifests: The files; none is a commit too, it marks the batch as done.
            app_id: Who commits.
            version: Which of its batches this is, counted up.
            info: Goes into the history of the table, as texts.

        Returns:
            False if this batch, or a later one, is there already.

        Raises:
            DatasetError: Other writers won every time.
        """
        actions: list[AddAction | RemoveAction] = [add_action(manifest) for manifest in manifests]
        properties = CommitProperties(
            custom_metadata={key: as_text(value) for key, value in (info or {}).items()},
            max_commit_retries=0,  # whether the batch is there already has to be asked anew each time
            app_transactions=[Transaction(app_id, version)],
        )
        for _ in range(COMMIT_ATTEMPTS):
            current = self.existing(table)
            done = current.transaction_version(app_id)
            if done is not None and done >= version:
                return False
            try:
                current.create_write_transaction(
                    actions,
                    "append",
                    table.schema,
                    partition_by=list(table.partitions),
                    commit_properties=properties,
                )
            except CommitFailedError:
                continue
            return True
        raise DatasetError(f"{self.uri(table)}: other writers won {COMMIT_ATTEMPTS} times")

    def source_offsets(self, table: Table) -> dict[int, int] | None:
        """Up to where the topic is in the table: the next offset of each partition; None if nothing is."""
        found = self.open(table)
        for commit in found.history() if found is not None else ():
            if SOURCE_OFFSETS in commit:
                return {int(key): value for key, value in json.loads(commit[SOURCE_OFFSETS]).items()}
        return None


def add_action(manifest: Manifest) -> AddAction:
    """A file as Delta's log names it."""
    return AddAction(
        path=manifest.path,
        size=manifest.file_bytes,
        partition_values=manifest.partition,
        modification_time=time.time_ns() // 1_000_000,
        data_change=True,
        stats=manifest.stats,
    )


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
