"""Tables as Spark reads them, without a jar for Delta: the log names the files, Spark reads Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  the name that Spark's users know
from pyspark.sql.pandas.types import from_arrow_schema

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.log import file_paths
from odradek_spark.tables.schemas import BY_NAME, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CLOCK_SKEW_MAX = timedelta(minutes=15)
"""How far ``ts`` may be from the receive time that the folders are named after; the decoder's default."""


def load_dataset(
    spark: SparkSession,
    root: str,
    table: str = "points",
    since: datetime | None = None,
    until: datetime | None = None,
) -> DataFrame:
    """A table of a dataset at this moment.

    Args:
        spark: The session.
        root: Path or URI of the dataset.
        table: Its name.
        since: Keep rows from then on, by the table's `Table.time`; with a time zone.
        until: And before then.

    Returns:
        The columns of `odradek_spark.tables.schemas`, those that are folders included.

    Raises:
        DatasetError: There is no such table.
    """
    described = BY_NAME[table]
    frame = read_files(spark, root, described, live_files(Dataset(root), described, since, until))
    if since is not None:
        frame = frame.where(F.col(described.time) >= F.lit(since))
    if until is not None:
        frame = frame.where(F.col(described.time) < F.lit(until))
    return frame


def read_files(spark: SparkSession, root: str, table: Table, files: Sequence[str]) -> DataFrame:
    """Some files of a table, by their whole paths.

    Returns:
        The columns of the table, those that are folders included.
    """
    schema = from_arrow_schema(table.schema)
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).option("basePath", f"{root.rstrip('/')}/{table.name}").parquet(*files)


def live_files(
    dataset: Dataset, table: Table, since: datetime | None = None, until: datetime | None = None
) -> list[str]:
    """The files of a table that may have rows of the time."""
    filters = []
    dated = "date" in table.partitions
    if since is not None and dated:
        filters.append(("date", ">=", f"{(since - CLOCK_SKEW_MAX).astimezone(UTC):%Y-%m-%d}"))
    if until is not None and dated:
        filters.append(("date", "<=", f"{(until + CLOCK_SKEW_MAX).astimezone(UTC):%Y-%m-%d}"))
    return file_paths(dataset.existing(table), filters)
