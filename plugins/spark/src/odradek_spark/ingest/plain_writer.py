"""Points written by Spark's own writer, for catalogs and tools that need files written by the JVM.

The points are plain Parquet under ``points``. Spark reads them exactly once, since it uses the list of files
that its sink keeps (``_spark_metadata``). A program that lists the folder may see files of a batch that was
interrupted by a crash. There are no other tables, and the jobs do not support it; it costs several times the
CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek_spark.tables.dataset import DatasetError
from odradek_spark.tables.files import exists
from odradek_spark.tables.schemas import POINTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek_spark.ingest.settings import IngestSettings

SINK_LOG = "_spark_metadata"
"""The sink's list of files, beside them."""


def plain_writer(spark: SparkSession, settings: IngestSettings) -> DataStreamWriter:
    """The streaming query, not started yet.

    Raises:
        DatasetError: The checkpoint is gone. The sink skips batches whose numbers it has seen, so new batches
            would be lost.
    """
    points = f"{settings.dataset.rstrip('/')}/{POINTS.name}"
    if exists(f"{points}/{SINK_LOG}") and not exists(f"{settings.checkpoint_location}/metadata"):
        raise DatasetError(
            f"{points} was written by Spark's own writer, and its checkpoint {settings.checkpoint_location} "
            "is gone: without it the writer would skip new batches as duplicates. Restore the checkpoint, or "
            "choose an empty folder"
        )
    options = settings.options() | {"rows": "points", "dataset": ""}
    rows = spark.readStream.format("odradek").options(**options).load()
    return rows.writeStream.format("parquet").partitionBy(*POINTS.partitions).option("path", points)


def is_plain(root: str) -> bool:
    """Whether this writer has written the dataset."""
    return exists(f"{root.rstrip('/')}/{POINTS.name}/{SINK_LOG}")
