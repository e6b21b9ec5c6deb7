"""Writes rows of a job as files of a table, in the Python workers; the files are not committed yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from odradek_tables.files import ARRIVED, Manifest, TableFiles
from odradek_tables.schemas import Table

GROUP_ROWS = 1 << 17
"""Rows of a row group: Spark passes fewer at a time, and small row groups are slow to read."""
MANIFEST = "manifest string"


@dataclass(frozen=True, slots=True)
class FileWriter:
    """The function of a task that writes its rows."""

    root: str
    table: Table
    prefix: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with TableFiles(self.root, self.table, self.prefix) as files:
            for rows in groups(batches):
                files.write(rows.cast(self.table.schema))
        yield manifest_batch(files.manifests)


def groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches into tables of about `GROUP_ROWS` rows."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= GROUP_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def manifest_batch(manifests: Iterable[Manifest]) -> pa.RecordBatch:
    """Manifests as rows of `MANIFEST`."""
    return pa.RecordBatch.from_pydict(
        {"manifest": pa.array([each.text() for each in manifests], pa.string())}
    )


def write_frame(rows: DataFrame, root: str, table: Table, prefix: str = ARRIVED) -> list[Manifest]:
    """Write rows as files of a table, one or more for each folder and task.

    Args:
        rows: Rows with the columns of the table, in any order.
        root: Path or URI of the dataset.
        table: The table.
        prefix: The prefix of the files' names.

    Raises:
        pyspark.errors.PySparkException: A task failed, for example because the store is full.
    """
    return written_by(rows.select(*table.schema.names), FileWriter(root, table, prefix))


def written_by(
    rows: DataFrame, write: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> list[Manifest]:
    """Write rows by a function of the tasks, which returns rows of `MANIFEST`.

    Raises:
        pyspark.errors.PySparkException: A task failed, for example because the store is full.
    """
    return [Manifest.parse(row["manifest"]) for row in rows.mapInArrow(write, MANIFEST).collect()]
