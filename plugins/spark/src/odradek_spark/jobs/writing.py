"""Rows of a job become files of a table, written by the Python workers; nobody sees them yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from odradek_spark.tables.files import ARRIVED, Manifest, TableFiles
from odradek_spark.tables.schemas import Table

GROUP_ROWS = 1 << 17
"""Rows that are written together: Spark hands over fewer, and small row groups read slowly."""
MANIFEST = "manifest string"


@dataclass(frozen=True, slots=True)
class FileWriter:
    """What a task does with its rows."""

    root: str
    table: Table
    prefix: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with TableFiles(self.root, self.table, self.prefix) as files:
            for rows in groups(batches):
                files.write(rows.cast(self.table.schema))
        yield manifest_batch(files.manifests)


def groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together to about `GROUP_ROWS` rows."""
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
        rows: Has the columns of the table, in any order.
        root: Of the dataset.
        table: Where they belong.
        prefix: What the names of the files begin with.

    Raises:
        pyspark.errors.PySparkException: A task failed, for lack of room for one.
    """
    written = rows.select(*table.schema.names).mapInArrow(FileWriter(root, table, prefix), MANIFEST).collect()
    return [Manifest.parse(row["manifest"]) for row in written]


@dataclass(frozen=True, slots=True)
class Assigned:
    """What a task does: each row is a text that says what files to write."""

    work: Callable[[str], Iterable[Manifest]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                written = manifest_batch(self.work(text))
                # the worker goes on to other tasks: Arrow would keep what a large sort took
                pa.default_memory_pool().release_unused()
                yield written


def write_in_tasks(
    spark: SparkSession, work: Callable[[str], Iterable[Manifest]], assignments: Sequence[str]
) -> list[Manifest]:
    """Have the workers write files, for each assignment in a task of its own.

    Args:
        spark: The session.
        work: Writes what an assignment says; it goes to the workers, so it is a function of a module.
        assignments: One or more.

    Raises:
        pyspark.errors.PySparkException: A task failed, for lack of room for one.
    """
    rows = spark.createDataFrame([(each,) for each in assignments], "assignment string")
    written = rows.repartition(len(assignments)).mapInArrow(Assigned(work), MANIFEST).collect()
    return [Manifest.parse(row["manifest"]) for row in written]
