"""Erases a client or a principal from all tables, their files and their history.

Rows are deleted folder by folder, so that ingest goes on beside it. The history of a table shows conditions,
so these have hashes in place of the values. Then every file that is no longer part of a table is deleted: a
query that still reads one fails, and has to be repeated.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import QueryBuilder

from odradek_tables.dataset import JOB, Dataset
from odradek_tables.files import write_files
from odradek_tables.following import joined
from odradek_tables.log import OffsetSpan
from odradek_tables.schemas import BY_NAME, DEAD_LETTER, ERASURES, PUSHES, Table

CLIENT_ID, PRINCIPAL, INSTANCE = "client_id", "principal", "client_instance_id"


def run_erase(root: str, column: str, value: str, now: datetime) -> dict[str, int]:
    """Erase a client id or a principal. Needs no Spark.

    Rows of a principal in tables that only have client ids, or instances, are those of its client ids or
    instances. Dead letters do not name their client: all of them are erased.

    The ``column`` is ``client_id`` or ``principal``; the audit has the time ``now``, which has a time zone.

    Returns:
        By table, the number of erased rows.

    Raises:
        DatasetError: The dataset does not exist, or other writers committed first at every attempt.
    """
    dataset = Dataset(root)
    dataset.existing(PUSHES)
    tables = [
        table for table in BY_NAME.values() if table is not ERASURES and dataset.open(table) is not None
    ]
    tables.sort(key=lambda table: table is PUSHES)  # last: a repeated erasure finds the records there
    asked = conditions(dataset, tables, column, value)
    folders = {table: folders_of(dataset, table, condition) for table, condition in asked.items()}
    done = {table.name: sum(found.values()) for table, found in folders.items()}
    if any(folders.values()):
        spans = {table: asked[table] for table in (PUSHES, DEAD_LETTER) if table in asked}
        audit(dataset, column, value, done, records(dataset, spans), now)
    for table, found in folders.items():
        for folder in found:
            dataset.delete(table, f"{folder} AND {asked[table]}", {JOB: "erase"})
        dataset.existing(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
    return done


def conditions(dataset: Dataset, tables: Iterable[Table], column: str, value: str) -> dict[Table, str]:
    """By table: the condition for the rows to erase. Tables that name no client are left out."""
    values = {column: [value]}
    if column == PRINCIPAL:
        values |= ids_of(dataset, one_of(PRINCIPAL, [value]))
    found = {}
    for table in tables:
        key = next((name for name in values if name in table.schema.names), None)
        if table is DEAD_LETTER:
            found[table] = "true"
        elif key is not None:
            found[table] = one_of(key, values[key])
    return found


def one_of(column: str, values: Iterable[str]) -> str:
    """The condition for some values of a column, without the values."""
    hashes = ", ".join(f"'{sha256(each)}'" for each in values)
    return f"encode(sha256({column}), 'hex') IN ({hashes})" if hashes else "false"


def sha256(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def ids_of(dataset: Dataset, condition: str) -> dict[str, list[str]]:
    names = (INSTANCE, CLIENT_ID)
    found: dict[str, set[str]] = {name: set() for name in names}
    for table in BY_NAME.values():
        if {PRINCIPAL, *names} <= set(table.schema.names) and dataset.open(table) is not None:
            for row, _ in counted(dataset, table, names, condition):
                for name in names:
                    found[name].update({row[name]} - {None})
    return {name: sorted(values) for name, values in found.items()}


def counted(
    dataset: Dataset, table: Table, columns: Sequence[str], condition: str
) -> list[tuple[dict[str, Any], int]]:
    """The distinct values of some columns, in the rows that meet a condition, and the numbers of rows."""
    names = ", ".join(columns)
    query = f"SELECT {names}, count(*) AS found FROM asked WHERE {condition} GROUP BY {names}"  # noqa: S608
    answer = QueryBuilder().register("asked", dataset.existing(table)).execute(query).read_all()
    return [(row, row.pop("found")) for row in pa.table(answer).to_pylist()]


def folders_of(dataset: Dataset, table: Table, condition: str) -> dict[str, int]:
    """The folders with rows to erase: by condition, the number of these rows."""
    return {
        " AND ".join(f"{name} = {value!r}" for name, value in row.items()): rows
        for row, rows in counted(dataset, table, table.partitions, condition)
    }


def records(dataset: Dataset, conditions: Mapping[Table, str]) -> list[OffsetSpan]:
    return joined(
        (row["src_partition"], row["src_offset"], row["src_offset"] + 1)
        for table, condition in conditions.items()
        for row, _ in counted(dataset, table, ["src_partition", "src_offset"], condition)
    )


def audit(
    dataset: Dataset,
    column: str,
    value: str,
    rows: Mapping[str, int],
    erased: Sequence[OffsetSpan],
    now: datetime,
) -> None:
    """Add a row to the audit; it has a hash of the value, so that the value itself is gone."""
    offsets = defaultdict(list)
    for partition, start, end in erased:
        offsets[partition].append((start, end))
    dataset.create([ERASURES])
    row = {
        "erased_ts": now,
        "erased": column,
        "value_sha256": sha256(value),
        "rows": json.dumps(rows, sort_keys=True),
        "records": json.dumps(offsets, sort_keys=True),
        "date": f"{now:%Y-%m-%d}",
    }
    files = write_files(dataset.root, ERASURES, pa.Table.from_pylist([row], ERASURES.schema))
    dataset.exchange(ERASURES, [], files, {JOB: "erase"}, data_change=True)
