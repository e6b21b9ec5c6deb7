"""A dataset: Delta tables under one root, committed by the library ``deltalake``.

Each commit carries numbers that only grow (Delta's application transactions): the offsets up to which the
topic is in the table, or the number of a job's run. They show whether a repeated batch is in the table
already, and whether there is a second writer.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, WriterProperties
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from odradek_tables.files import Manifest
from odradek_tables.log import LiveFile, live
from odradek_tables.schemas import INGESTED, Table

COMMIT_ATTEMPTS = 20
"""An attempt fails only if another writer has committed meanwhile."""
LOG_PROPERTIES = {
    "delta.checkpointInterval": "10",
    "delta.logRetentionDuration": "interval 8 days",
    "delta.deletedFileRetentionDuration": "interval 2 days",
}
"""Ingest commits every minute: with Delta's defaults, each commit would have to list a month of them.

Verification compares the history with the days that the tables keep; `vacuum` needs a day of removals.
"""
JOB = "odradekJob"
"""Key in the history of a table: the job that committed. Delta's jar cannot read a text under ``job``."""
COLUMNS, FIRST = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
"""Properties of Delta: the names of the columns with statistics, and their number from the first one.

Without them, ``deltalake`` expects statistics of the first columns. It takes a column that has none for null,
so readers with a filter on it skip every row.
"""
COMPRESSED = WriterProperties(compression="ZSTD")
SAID = re.compile(r'Os \{.*message: "([^"]+)"')

T = TypeVar("T")
Info = Mapping[str, Any]
"""Entries for the history of a table, stored as text."""
NO_INFO: Info = MappingProxyType({})
Ranges = Mapping[int, tuple[int, int]]
"""By partition of the topic: the first offset and the end offset (last + 1)."""


class DatasetError(Exception):
    """The dataset is unusable in its present state; the message says what to do."""


class Dataset:
    """Tables under a root, which is a local path or a URI."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")

    def uri(self, table: Table) -> str:
        return f"{self.root}/{table.name}"

    def create(self, tables: Sequence[Table] = INGESTED) -> None:
        """Create the missing tables.

        Raises:
            DatasetError: The root is not writable, or is not a dataset.
        """
        for table in tables:
            try:
                DeltaTable.create(
                    self.uri(table),
                    table.schema,
                    mode="ignore",
                    partition_by=list(table.partitions),
                    configuration={**LOG_PROPERTIES, **statistics_properties(table)},
                )
            except Exception as error:
                raise DatasetError(f"{self.uri(table)}: cannot be created: {cause(error)}") from error

    def open(self, table: Table) -> DeltaTable | None:
        """Open the current version of a table; None if it does not exist."""
        try:
            return DeltaTable(self.uri(table))
        except TableNotFoundError:
            return None

    def existing(self, table: Table) -> DeltaTable:
        """Open the current version of a table that must exist.

        Raises:
            DatasetError: The table does not exist.
        """
        found = self.open(table)
        if found is None:
            raise DatasetError(f"{self.uri(table)}: no such table: check the path, and ingest into it first")
        return found

    def committed(self, table: Table, app_id: str) -> int | None:
        """The last number that an application committed to a table; None if it never did."""
        found = self.open(table)
        return None if found is None else found.transaction_version(app_id)

    def commit_next(
        self,
        table: Table,
        manifests: Sequence[Manifest],
        app_id: str,
        after: int | None,
        version: int,
        info: Info = NO_INFO,
        removed: Sequence[LiveFile] = (),
    ) -> bool:
        """Commit the result of a run that was computed from an earlier version: add files and remove others.

        The number of the job in the table was ``after`` when the run began, and is ``version`` after it.
        False if another run was faster, or if a file to remove is gone already.
        """
        return self.append(
            table,
            manifests,
            {app_id: version},
            info,
            lambda current: current.transaction_version(app_id) == after and all_live(current, removed),
            removed,
        )

    def exchange(
        self,
        table: Table,
        removed: Sequence[LiveFile],
        manifests: Sequence[Manifest],
        info: Info = NO_INFO,
        *,
        data_change: bool,
    ) -> bool:
        """Replace files by others in one commit; False if one of them is gone already.

        Replaced files stay on disk for current readers, until `vacuum`. ``data_change`` says whether the rows
        change; if not, jobs that follow the log skip the commit.
        """
        wanted = partial(all_live, files=removed)
        return self.append(table, manifests, {}, info, wanted, removed, data_change=data_change)

    def delete(self, table: Table, predicate: str, info: Info) -> int:
        """Delete rows in one commit: files without other rows are removed, and the others written again.

        The predicate is a condition in SQL, which the history of the table shows. Unless it names a folder,
        or days, each commit of ingest makes the deletion start again.

        Returns:
            The number of deleted rows; without any, there is no commit.

        Raises:
            DatasetError: Other writers committed first at every attempt.
        """
        properties = CommitProperties(custom_metadata=texts(info))

        def attempt(current: DeltaTable) -> int:
            return int(
                current.delete(predicate, COMPRESSED, commit_properties=properties)["num_deleted_rows"]
            )

        return self.attempted(table, attempt)

    def append(
        self,
        table: Table,
        manifests: Sequence[Manifest],
        numbers: Mapping[str, int],
        info: Info,
        wanted: Callable[[DeltaTable], bool],
        removed: Sequence[LiveFile] = (),
        *,
        data_change: bool = True,
    ) -> bool:
        """Commit if a check of the current table allows it. Check again after each lost race."""
        actions: list[AddAction | RemoveAction] = [add_action(each, data_change) for each in manifests]
        actions.extend(remove_action(each, data_change) for each in removed)
        properties = CommitProperties(
            custom_metadata=texts(info),
            max_commit_retries=0,  # the check must be repeated before each attempt
            app_transactions=[Transaction(app_id, number) for app_id, number in numbers.items()],
        )

        def attempt(current: DeltaTable) -> bool:
            if not wanted(current):
                return False
            current.create_write_transaction(
                actions,
                "append",
                table.schema,
                partition_by=list(table.partitions),
                commit_properties=properties,
            )
            return True

        return self.attempted(table, attempt)

    def attempted(self, table: Table, attempt: Callable[[DeltaTable], T]) -> T:
        """Change the latest version of a table, again after each lost race.

        Raises:
            DatasetError: Other writers committed first at every attempt.
        """
        for _ in range(COMMIT_ATTEMPTS):
            current = self.existing(table)
            with suppress(CommitFailedError):
                if not upgrade(current, table):  # the attempt must see the latest version
                    return attempt(current)
        raise DatasetError(
            f"{self.uri(table)}: other writers committed first {COMMIT_ATTEMPTS} times: stop some of them"
        )

    def source_offsets(self, table: Table, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """By partition: the offset up to which the table has the topic (last + 1)."""
        current = self.open(table)
        if current is None:
            return {}
        found = {part: current.transaction_version(source_id(topic, part)) for part in partitions}
        return {part: end for part, end in found.items() if end is not None}


def cause(error: Exception) -> str:
    """The system's message, if `deltalake` wraps it in a Rust error."""
    found = SAID.search(str(error))
    return found[1] if found else str(error)


def source_id(topic: str, partition: int) -> str:
    """The application id under which a table stores an offset."""
    return f"source:{topic}:{partition}"


def all_live(current: DeltaTable, files: Sequence[LiveFile]) -> bool:
    return not files or {each.path for each in files} <= {each.path for each in live(current)}


def add_action(manifest: Manifest, data_change: bool) -> AddAction:
    return AddAction(
        path=manifest.path,
        size=manifest.file_bytes,
        partition_values=manifest.partition,
        modification_time=now_ms(),
        data_change=data_change,
        stats=manifest.stats,
    )


def remove_action(file: LiveFile, data_change: bool) -> RemoveAction:
    return RemoveAction(
        path=file.path,
        data_change=data_change,
        deletion_timestamp=now_ms(),
        size=file.file_bytes,
        partition_values=dict(file.partition),
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def texts(info: Info) -> dict[str, str]:
    return {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for key, value in info.items()
    }


def statistics_properties(table: Table) -> dict[str, str]:
    """The properties of a table whose files have statistics of some columns only."""
    names = ",".join(table.ranged)
    return {COLUMNS: names} if names else {FIRST: "0"}


def upgrade(current: DeltaTable, table: Table) -> bool:
    """Add the property and new columns to a table of an older version, each in a commit of its own.

    Returns:
        Whether something was missing, so that the table has a newer version now.

    Raises:
        CommitFailedError: Another writer committed first.
    """
    if table.added:
        known = {each.name for each in current.schema().fields}
        missing = pa.schema([table.schema.field(name) for name in table.added if name not in known])
        if missing.names:
            current.alter.add_columns(Schema.from_arrow(missing).fields)
            return True
    if {COLUMNS, FIRST} & set(current.metadata().configuration):
        return False
    current.alter.set_table_properties(statistics_properties(table))
    return True
