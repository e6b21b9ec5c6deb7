"""Erases a client or a principal from all tables, their files and their history.

Each file with rows of it is written again without them and deleted, also if the file is no longer part of its
table. Jobs that still have to process an erased file read its successor: `ERASED_FILES` names it.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyarrow import fs

from odradek_spark.tables.dataset import JOB, Dataset, DatasetError
from odradek_spark.tables.erased import ERASED_FILES
from odradek_spark.tables.files import GrowingFile, Manifest, file_system, write_files
from odradek_spark.tables.log import live
from odradek_spark.tables.schemas import BY_NAME, DEAD_LETTER, ERASURES, PUSHES, Table

CLIENT_ID, PRINCIPAL, INSTANCE = "client_id", "principal", "client_instance_id"
UNIQUE_CHARS = len("-00000000-0000-0000-0000-000000000000.zstd.parquet")
ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Whom to erase: a client id or a principal, and the ids that belong to it."""

    column: str
    value: str
    ids: dict[str, list[str]]
    """By column: the values of its rows in tables that lack ``column``."""

    def matches(self, table: Table, rows: pa.Table) -> pa.Array | pa.ChunkedArray | None:
        """Whether each row is to be erased; None if no row of the table names a client.

        Dead letters do not name their client: all of them are erased.
        """
        if table is DEAD_LETTER:
            return pa.repeat(True, rows.num_rows)
        key = self.key(table)
        if key is None:
            return None
        wanted = [self.value] if key == self.column else self.ids[key]
        if key not in rows.column_names:
            return pa.repeat(False, rows.num_rows)
        return pc.fill_null(pc.is_in(rows[key], pa.array(wanted, pa.string())), fill_value=False)

    def key(self, table: Table) -> str | None:
        """The column of a table that tells its rows."""
        return next((name for name in (self.column, *self.ids) if name in table.schema.names), None)


@dataclass(slots=True)
class Erased:
    """The result of an erasure."""

    rows: dict[str, int] = field(default_factory=dict)
    """By table: the number of rows that were part of it."""
    files: int = 0
    """Number of files that were deleted."""

    def text(self) -> str:
        """The result in one line."""
        found = [f"{count} rows of {table}" for table, count in self.rows.items() if count]
        return f"erase: {', '.join(found) or 'no rows'}; {self.files} files deleted"


@dataclass(frozen=True, slots=True)
class Hit:
    """A file with rows to erase."""

    path: str
    partition: dict[str, str]
    rows: int
    is_live: bool


def run_erase(root: str, column: str, value: str, now: datetime) -> Erased:
    """Erase a client id or a principal. Needs no Spark.

    Rows of a principal in tables that only have client ids, or instances, are those of its client ids or
    instances.

    Args:
        root: Path or URI of the dataset.
        column: ``client_id`` or ``principal``.
        value: Its value.
        now: The time for the audit row, with a time zone.

    Raises:
        DatasetError: The dataset does not exist, has columns of a newer version, or a job replaced files at
            every attempt.
    """
    dataset = Dataset(root)
    dataset.existing(PUSHES)
    person = Person(column=column, value=value, ids=ids_of(dataset, column, value))
    tables = [
        table for table in BY_NAME.values() if table is not ERASURES and dataset.open(table) is not None
    ]
    tables.sort(key=lambda table: table is PUSHES)  # last: a repeated erasure finds the records there
    done = Erased()
    for table in tables:
        check_columns(dataset, table)
    found = {table.name: hits(dataset, table, person) for table in tables}
    done.rows = {name: sum(each.rows for each in of if each.is_live) for name, of in found.items()}
    if any(found.values()):
        audit(dataset, person, done.rows, records(dataset, person), now)
    for table in tables:
        done.files += erase_from(dataset, table, person)
    return done


def ids_of(dataset: Dataset, column: str, value: str) -> dict[str, list[str]]:
    """The instances and client ids of a principal; a client id needs neither."""
    if column == CLIENT_ID:
        return {}
    found: dict[str, set[str]] = {INSTANCE: set(), CLIENT_ID: set()}
    for table in BY_NAME.values():
        current = dataset.open(table) if {PRINCIPAL, *found} <= set(table.schema.names) else None
        if current is None:
            continue
        for path in paths(dataset, table, current):
            rows = read(dataset, table, path, [PRINCIPAL, *found])
            theirs = rows.filter(pc.equal(rows[PRINCIPAL], value))
            for name, values in found.items():
                values.update(theirs[name].drop_null().to_pylist())
    return {name: sorted(values) for name, values in found.items()}


def check_columns(dataset: Dataset, table: Table) -> None:
    """Check that no column gets lost.

    Raises:
        DatasetError: The table has columns that this version does not know.
    """
    newer = {each.name for each in dataset.existing(table).schema().fields} - set(table.schema.names)
    if newer:
        raise DatasetError(
            f"{dataset.uri(table)} has columns of a newer version ({', '.join(sorted(newer))}): "
            "update odradek-spark"
        )


def removed(dataset: Dataset, table: Table, current: DeltaTable) -> list[str]:
    """Files that were part of a table and still exist."""
    found = current.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False)
    system, base = file_system(dataset.uri(table))
    infos = system.get_file_info([f"{base}/{each}" for each in found])
    return [path for path, info in zip(found, infos, strict=True) if info.type is not fs.FileType.NotFound]


def paths(dataset: Dataset, table: Table, current: DeltaTable) -> list[str]:
    """The files of a table, and those that were part of it."""
    return [*(each.path for each in live(current)), *removed(dataset, table, current)]


def read(dataset: Dataset, table: Table, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a file; columns that it lacks are left out."""
    system, base = file_system(dataset.uri(table))
    with pq.ParquetFile(f"{base}/{path}", filesystem=system) as file:
        known = set(file.schema_arrow.names)
        return file.read(None if columns is None else [name for name in columns if name in known])


def hits(dataset: Dataset, table: Table, person: Person) -> list[Hit]:
    """The files with rows to erase."""
    key = person.key(table)
    if key is None and table is not DEAD_LETTER:
        return []
    current = dataset.existing(table)
    is_live = {each.path for each in live(current)}
    found = []
    for path in paths(dataset, table, current):
        rows = read(dataset, table, path, None if key is None else [key])
        chosen = person.matches(table, rows)
        count = 0 if chosen is None else pc.sum(chosen).as_py() or 0
        if count:
            found.append(Hit(path, folders(path), count, path in is_live))
    return found


def folders(path: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in path.split("/")[:-1])


def erase_from(dataset: Dataset, table: Table, person: Person) -> int:
    """Erase from one table; return the number of deleted files.

    Raises:
        DatasetError: A job replaced files at every attempt.
    """
    for _ in range(ATTEMPTS):
        found = hits(dataset, table, person)
        if not found:
            return 0
        successors = {each.path: without(dataset, table, person, each) for each in found}
        old = {each.path for each in found if each.is_live}
        info = {
            JOB: "erase",
            ERASED_FILES: {
                path: None if each is None else [each.path, each.rows] for path, each in successors.items()
            },
        }
        added = [each for path, each in successors.items() if each is not None and path in old]
        files = [each for each in live(dataset.existing(table)) if each.path in old]
        if dataset.exchange(table, files, added, info, data_change=False):
            delete(dataset, table, successors)
            return len(found)
        delete(dataset, table, [each.path for each in successors.values() if each is not None])
    raise DatasetError(f"{dataset.uri(table)}: other jobs replaced files meanwhile: erase again")


def without(dataset: Dataset, table: Table, person: Person, hit: Hit) -> Manifest | None:
    """Write the other rows of a file to a new one of the same kind; None if there are none."""
    rows = read(dataset, table, hit.path)
    chosen = person.matches(table, rows)
    assert chosen is not None
    rest = rows.filter(pc.invert(chosen))
    if not rest.num_rows:
        return None
    for each in table.file_schema:
        if each.name not in rest.column_names:
            rest = rest.append_column(each, pa.nulls(rest.num_rows, each.type))
    rest = rest.select(table.file_schema.names).cast(table.file_schema)
    name = hit.path.rpartition("/")[2]
    file = GrowingFile(dataset.root, table, hit.partition, rest.schema, name[:-UNIQUE_CHARS])
    try:
        file.write(rest)
    finally:
        file.close()
    return file.manifest()


def delete(dataset: Dataset, table: Table, gone: Iterable[str]) -> None:
    """Delete files."""
    system, base = file_system(dataset.uri(table))
    for path in gone:
        system.delete_file(f"{base}/{path}")


def records(dataset: Dataset, person: Person) -> dict[int, list[tuple[int, int]]]:
    """The records of the topic that are erased: by partition, ranges of offsets."""
    found: dict[int, set[int]] = defaultdict(set)
    for table in (PUSHES, DEAD_LETTER):
        for hit in hits(dataset, table, person):
            rows = read(dataset, table, hit.path)
            theirs = rows.filter(person.matches(table, rows))
            for partition, offset in zip(
                theirs["src_partition"].to_pylist(), theirs["src_offset"].to_pylist(), strict=True
            ):
                found[partition].add(offset)
    return {partition: joined(sorted(offsets)) for partition, offsets in found.items()}


def joined(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Ranges of offsets: the first, and the last + 1."""
    ranges: list[tuple[int, int]] = []
    for each in offsets:
        if ranges and ranges[-1][1] == each:
            ranges[-1] = ranges[-1][0], each + 1
        else:
            ranges.append((each, each + 1))
    return ranges


def audit(
    dataset: Dataset,
    person: Person,
    rows: dict[str, int],
    erased: dict[int, list[tuple[int, int]]],
    now: datetime,
) -> None:
    """Add a row to the audit; it has a hash of the value, so that the value itself is gone."""
    dataset.create([ERASURES])
    row = {
        "erased_ts": now,
        "erased": person.column,
        "value_sha256": hashlib.sha256(person.value.encode()).hexdigest(),
        "rows": json.dumps(rows, sort_keys=True),
        "records": json.dumps(erased, sort_keys=True),
        "date": f"{now:%Y-%m-%d}",
    }
    files = write_files(dataset.root, ERASURES, pa.Table.from_pylist([row], ERASURES.schema))
    dataset.exchange(ERASURES, [], files, {JOB: "erase"}, data_change=True)
