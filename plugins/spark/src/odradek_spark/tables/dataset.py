"""A dataset: Delta tables under one root, committed by the library ``deltalake``.

A commit carries numbers that only grow (Delta's application transactions): the offsets up to which the topic
is in the table, or the number of a job's run. So what is done again is seen to be there already, and a second
writer is seen to be one.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from odradek_spark.tables.files import Manifest
from odradek_spark.tables.log import LiveFile, live
from odradek_spark.tables.schemas import INGESTED, Table

COMMIT_ATTEMPTS = 20
"""Each one that fails was beaten by another writer, who got on."""
CHECKPOINT_INTERVAL = 10
SAID = re.compile(r'Os \{.*message: "([^"]+)"')

Ranges = Mapping[int, tuple[int, int]]
"""By partition of the topic: the first offset, and the one behind the last."""


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
                raise DatasetError(f"{self.uri(table)}: cannot be made: {cause(error)}") from error

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
        """The last number that an application committed to a table."""
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
        """Make the files of a job's run visible, all at once.

        Args:
            table: Whose files they are.
            manifests: The files; none is a commit too, it marks the run as done.
            app_id: Which job.
            version: The number of the run, counted up.
            info: Goes into the history of the table, as texts.

        Returns:
            False if this run, or a later one, is there already.

        Raises:
            DatasetError: Other writers won every time.
        """

        def is_new(current: DeltaTable) -> bool:
            done = current.transaction_version(app_id)
            return done is None or done < version

        return self.append(table, manifests, {app_id: version}, info or {}, is_new)

    def commit_next(
        self,
        table: Table,
        manifests: Sequence[Manifest],
        app_id: str,
        after: int | None,
        version: int,
        info: Mapping[str, Any] | None = None,
        removed: Sequence[LiveFile] = (),
    ) -> bool:
        """Make visible what was made from the table as it was, all at once: files come, others go.

        Args:
            table: Whose files they are.
            manifests: The files that come.
            app_id: Which job.
            after: The number of the job that the table had when the run began; None for none.
            version: The number that it gets.
            info: Goes into the history of the table, as texts.
            removed: The files that go.

        Returns:
            False if another run was faster, or if one of the files that go is gone.

        Raises:
            DatasetError: Other writers won every time.
        """

        def is_next(current: DeltaTable) -> bool:
            return current.transaction_version(app_id) == after and all_live(current, removed)

        return self.append(table, manifests, {app_id: version}, info or {}, is_next, removed)

    def exchange(
        self,
        table: Table,
        removed: Sequence[LiveFile],
        manifests: Sequence[Manifest],
        info: Mapping[str, Any] | None = None,
        *,
        data_change: bool,
    ) -> bool:
        """Put files in the place of others, all at once.

        Args:
            table: Whose files they are.
            removed: The files that go. They stay on disk for those who read them now, until `vacuum`.
            manifests: The files that come; none where rows only go.
            info: Goes into the history of the table, as texts.
            data_change: Whether there are other rows afterwards; if not, followers of the log pass it over.

        Returns:
            False if one of the files that go is gone already.

        Raises:
            DatasetError: Other writers won every time.
        """

        def is_possible(current: DeltaTable) -> bool:
            return all_live(current, removed)

        return self.append(table, manifests, {}, info or {}, is_possible, removed, data_change=data_change)

    def commit_ranges(
        self,
        table: Table,
        manifests: Sequence[Manifest],
        topic: str,
        ranges: Ranges,
        info: Mapping[str, Any] | None = None,
    ) -> bool:
        """Make visible what was read from ranges of the topic, all at once.

        A table begins a partition at offset 0, or where an empty range says.

        Returns:
            False if the ranges are there already.

        Raises:
            DatasetError: The table ends somewhere else than the ranges begin: somebody else writes to it, or
                the topic or the checkpoint is another one. Or other writers won every time.
        """

        def is_next(current: DeltaTable) -> bool:
            ends = {part: current.transaction_version(source_id(topic, part)) for part in ranges}
            if all(ends[part] == stop for part, (_, stop) in ranges.items()):
                return False
            for part, (start, stop) in ranges.items():
                if ends[part] is None and 0 < start < stop:
                    raise DatasetError(
                        f"{self.uri(table)}: {topic}-{part} is not there yet, and offsets from {start} on "
                        "would begin in the middle: the checkpoint is that of another dataset. Delete it"
                    )
                if ends[part] not in (None, start):
                    raise DatasetError(
                        f"{self.uri(table)}: {topic}-{part} is there up to offset {ends[part]}, and not "
                        f"{start}, where offsets up to {stop} would go on: another ingester writes to this "
                        "dataset, or the topic was made anew. Stop the other one and delete the checkpoint "
                        "of this one, or take another dataset"
                    )
            return True

        reached = {source_id(topic, part): stop for part, (_, stop) in ranges.items()}
        return self.append(table, manifests, reached, info or {}, is_next)

    def append(
        self,
        table: Table,
        manifests: Sequence[Manifest],
        numbers: Mapping[str, int],
        info: Mapping[str, Any],
        wanted: Callable[[DeltaTable], bool],
        removed: Sequence[LiveFile] = (),
        *,
        data_change: bool = True,
    ) -> bool:
        """Commit unless the table says that it is not wanted; asked again whenever another writer won."""
        actions: list[AddAction | RemoveAction] = [add_action(each, data_change) for each in manifests]
        actions.extend(remove_action(each, data_change) for each in removed)
        properties = CommitProperties(
            custom_metadata={key: as_text(value) for key, value in info.items()},
            max_commit_retries=0,  # whether it is still wanted has to be asked anew each time
            app_transactions=[Transaction(app_id, number) for app_id, number in numbers.items()],
        )
        for _ in range(COMMIT_ATTEMPTS):
            current = self.existing(table)
            if not wanted(current):
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

    def source_offsets(self, table: Table, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Up to where the topic is in a table: by partition, the offset behind the last that is there."""
        current = self.open(table)
        if current is None:
            return {}
        found = {part: current.transaction_version(source_id(topic, part)) for part in partitions}
        return {part: end for part, end in found.items() if end is not None}


def cause(error: Exception) -> str:
    """What the system said, where `deltalake` wraps it in words of Rust."""
    found = SAID.search(str(error))
    return found[1] if found else str(error)


def source_id(topic: str, partition: int) -> str:
    """The application id under which a table keeps an offset."""
    return f"source:{topic}:{partition}"


def all_live(current: DeltaTable, files: Sequence[LiveFile]) -> bool:
    """Whether a table still has the files."""
    return not files or {each.path for each in files} <= {each.path for each in live(current)}


def add_action(manifest: Manifest, data_change: bool) -> AddAction:
    """A file that comes, as Delta's log names it."""
    return AddAction(
        path=manifest.path,
        size=manifest.file_bytes,
        partition_values=manifest.partition,
        modification_time=now_ms(),
        data_change=data_change,
        stats=manifest.stats,
    )


def remove_action(file: LiveFile, data_change: bool) -> RemoveAction:
    """A file that goes."""
    return RemoveAction(
        path=file.path,
        data_change=data_change,
        deletion_timestamp=now_ms(),
        size=file.file_bytes,
        partition_values=dict(file.partition),
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
