"""Points by Spark's own writer: for those whose catalog or tools need what the JVM writes.

Plain Parquet under ``points``, exactly once for Spark, which reads the list of files that its sink keeps
(``_spark_metadata``). Whoever lists the folder may see files of a batch that a crash cut off. There are no
other tables, and no jobs work on it; it costs several times the CPU.
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
"""What Spark's sink keeps beside its files."""


def plain_writer(spark: SparkSession, settings: IngestSettings) -> DataStreamWriter:
    """The streaming query, not started yet.

    Raises:
        DatasetError: The checkpoint is gone: the sink counts batches, and passes over those it has had.
    """
    points = f"{settings.dataset.rstrip('/')}/{POINTS.name}"
    if exists(f"{points}/{SINK_LOG}") and not exists(f"{settings.checkpoint_location}/metadata"):
        raise DatasetError(
            f"{points} was begun by Spark's own writer, and its checkpoint {settings.checkpoint_location} is "
            "gone: its sink would take what comes now for what it has already. Bring the checkpoint back, or "
            "take an empty folder"
        )
    options = settings.options() | {"rows": "points", "dataset": ""}
    rows = spark.readStream.format("odradek").options(**options).load()
    return rows.writeStream.format("parquet").partitionBy(*POINTS.partitions).option("path", points)


def is_plain(root: str) -> bool:
    """Whether this writer has been at work."""
    return exists(f"{root.rstrip('/')}/{POINTS.name}/{SINK_LOG}")
