"""Loads tables into Spark without Delta's jar: Delta's log names the files, and Spark reads Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's users know
from pyspark.sql.pandas.types import from_arrow_schema

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.files import file_system
from odradek_spark.tables.log import paths_between
from odradek_spark.tables.schemas import BY_NAME, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VECTORIZED, SPLIT_SINCE = "spark.sql.parquet.enableVectorizedReader", (4, 3)
"""Spark's fast reader, and the version since which it reads Parquet's BYTE_STREAM_SPLIT.

``value`` is encoded like that in files of earlier versions.
"""
NO_FILE_SYSTEM = "No FileSystem for scheme"
"""The JVM's error for a store without a jar."""


def load_dataset(
    spark: SparkSession,
    root: str,
    table: str = "points",
    since: datetime | None = None,
    until: datetime | None = None,
) -> DataFrame:
    """Load the current version of a table.

    Args:
        spark: The session.
        root: Path or URI of the dataset.
        table: The name of the table.
        since: Keep only rows at or after this time, by the table's `Table.time`; with a time zone.
        until: Keep only rows before this time.

    Returns:
        The columns of `odradek_spark.tables.schemas`, including the partition columns.

    Raises:
        DatasetError: The table does not exist.
    """
    described = BY_NAME[table]
    frame = read_files(spark, root, described, live_files(Dataset(root), described, since, until))
    if since is not None:
        frame = frame.where(F.col(described.time) >= F.lit(since))
    if until is not None:
        frame = frame.where(F.col(described.time) < F.lit(until))
    return frame


def read_files(spark: SparkSession, root: str, table: Table, files: Sequence[str]) -> DataFrame:
    """Read files of a table, given by their full paths.

    If Spark lacks the jar for their store, the Python workers read them, without skipping columns or rows.

    Returns:
        The columns of the table, including the partition columns.
    """
    schema = from_arrow_schema(table.schema)
    if not files:
        return spark.createDataFrame([], schema)
    base = f"{root.rstrip('/')}/{table.name}"
    if tuple(int(part) for part in spark.version.split(".")[:2]) < SPLIT_SINCE:
        spark.conf.set(VECTORIZED, "false")
    try:
        frame = spark.read.schema(schema).option("basePath", base).parquet(*files)
        frame.schema  # noqa: B018  Spark Connect looks at the files only now
    except (PySparkException, Py4JError) as error:
        if NO_FILE_SYSTEM not in str(error):
            raise
        paths = spark.createDataFrame([(each,) for each in files], "path string").repartition(len(files))
        return paths.mapInArrow(FileReader(table), schema)
    return frame


@dataclass(frozen=True, slots=True)
class FileReader:
    """The function of a task that reads files; each input row is the full path of a file."""

    table: Table

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from file_rows(self.table, path)


def file_rows(table: Table, path: str) -> Iterator[pa.RecordBatch]:
    """The rows of a file, with the partition columns from its path; missing columns are null."""
    folders = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
    system, place = file_system(path)
    with pq.ParquetFile(place, filesystem=system) as file:
        known = [name for name in table.file_schema.names if name in file.schema_arrow.names]
        for rows in file.iter_batches(columns=known):
            yield pa.RecordBatch.from_arrays(
                [column(rows, each, folders) for each in table.schema], schema=table.schema
            )


def column(rows: pa.RecordBatch, field: pa.Field, folders: Mapping[str, str]) -> pa.Array:
    """One column of a table, for some rows of a file."""
    if field.name in rows.schema.names:
        return rows[field.name].cast(field.type)
    value = pa.scalar(folders.get(field.name), pa.string()).cast(field.type)
    return pa.repeat(value, rows.num_rows)


def live_files(
    dataset: Dataset, table: Table, since: datetime | None = None, until: datetime | None = None
) -> list[str]:
    """The files of a table that may have rows of a time range."""
    return paths_between(dataset.existing(table), table.time, since, until)
