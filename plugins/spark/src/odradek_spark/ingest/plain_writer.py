"""Points by Spark's own writer: for those whose catalog or tools need what the JVM writes.

Plain Parquet under ``points``, exactly once for Spark, which reads the list of files that its sink keeps
(``_spark_metadata``). Whoever lists the folder may see files of a batch that a crash cut off. There are no
other tables, and no jobs work on it; it costs several times the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek_spark.source.options import OptionError
from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.schemas import POINTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek_spark.ingest.query import IngestSettings


def plain_writer(spark: SparkSession, settings: IngestSettings) -> DataStreamWriter:
    """The streaming query, not started yet.

    Raises:
        DatasetError: The dataset has Delta tables.
        OptionError: The source is another one.
    """
    if settings.source != "odradek":
        raise OptionError("writer=spark reads by the source odradek")
    if Dataset(settings.dataset).open(POINTS) is not None:
        raise DatasetError(f"{settings.dataset} has Delta tables: writer=spark needs a dataset of its own")
    options = settings.options() | {"rows": "points", "dataset": ""}
    rows = spark.readStream.format("odradek").options(**options).load()
    return (
        rows.writeStream.format("parquet")
        .partitionBy(*POINTS.partitions)
        .option("path", f"{settings.dataset.rstrip('/')}/{POINTS.name}")
    )
