"""Loads tables into Spark without Delta's jar: Delta's log names the files, and Spark reads Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's users know
from pyspark.sql.pandas.types import from_arrow_schema

from odradek_tables.dataset import Dataset
from odradek_tables.files import arrow_files
from odradek_tables.log import OffsetSpan, paths_between
from odradek_tables.schemas import BY_NAME, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
        The columns of `odradek_tables.schemas`, including the partition columns.

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
    """Read files of a table, given by their full paths, with the partition columns.

    If Spark lacks the jar for their store, the Python workers read them, without skipping columns or rows.
    """
    schema = from_arrow_schema(table.schema)
    if not files:
        return spark.createDataFrame([], schema)
    base = f"{root.rstrip('/')}/{table.name}"
    try:
        frame = spark.read.schema(schema).option("basePath", base).parquet(*files)
        frame.schema  # noqa: B018  Spark Connect looks at the files only now
    except (PySparkException, Py4JError) as error:
        if NO_FILE_SYSTEM not in str(error):
            raise
        paths = spark.createDataFrame([(each,) for each in files], "path string").repartition(len(files))
        return paths.mapInArrow(partial(files_rows, table), schema)
    return frame


def read_spans(
    spark: SparkSession, root: str, table: Table, files: Sequence[str], spans: Sequence[OffsetSpan] | None
) -> DataFrame:
    """Read the rows of records of the topic from the files that may have them; all rows for None."""
    frame = read_files(spark, root, table, files)
    if spans is None:
        return frame
    wanted = spark.createDataFrame(list(spans), "part int, start bigint, end bigint")
    inside = F.expr("src_partition = part AND src_offset >= start AND src_offset < end")
    return frame.join(F.broadcast(wanted), inside, "left_semi")


def files_rows(table: Table, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function of a task that reads files; each input row is the full path of a file."""
    for batch in batches:
        for path in batch.column(0).to_pylist():
            root, _, _ = path.rpartition(f"/{table.name}/")
            yield from arrow_files(root, table, [path]).to_batches()


def live_files(
    dataset: Dataset, table: Table, since: datetime | None = None, until: datetime | None = None
) -> list[str]:
    return paths_between(dataset.existing(table), table.time, since, until)
