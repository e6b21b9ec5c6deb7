"""The streaming query that ingests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek_spark.ingest.commit import CommitBatch
from odradek_spark.ingest.dataset_root import check_root
from odradek_spark.ingest.plain_writer import is_plain, plain_writer
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.source.options import read_options
from odradek_spark.source.topic import TopicReader
from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.schemas import POINTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LOOK_S = 10.0
"""How long a broker may take to answer before anything has begun."""


def check_ingest(settings: IngestSettings) -> None:
    """See that there is something to read and somewhere to write, which needs no Spark.

    Raises:
        DatasetError: The dataset cannot be written, is something else, or was written by the other writer.
        TopicError: There is no such topic, or it may not be read.
        Unreachable: Nobody answers; that may pass.
    """
    check_dataset(settings)
    reader = TopicReader(read_options(settings.options()), LOOK_S)
    try:
        reader.partitions()
    finally:
        reader.close()
    if settings.writer != "spark":
        Dataset(settings.dataset).create()


def check_dataset(settings: IngestSettings) -> None:
    """See that a dataset is ours, and the writer its own.

    Raises:
        DatasetError: It is not.
    """
    check_root(settings.dataset)
    is_delta = Dataset(settings.dataset).open(POINTS) is not None
    if settings.writer == "spark" and is_delta:
        raise DatasetError(f"{settings.dataset} has Delta tables: writer=spark needs a dataset of its own")
    if settings.writer != "spark" and not is_delta and is_plain(settings.dataset):
        raise DatasetError(f"{settings.dataset} has points by Spark's own writer: go on with writer=spark")


def start_ingest(spark: SparkSession, settings: IngestSettings, *, once: bool) -> StreamingQuery:
    """Start to ingest.

    Args:
        spark: A session with the source registered.
        settings: What to do.
        once: Stop when everything is in that is in the topic now; else go on.

    Raises:
        DatasetError: The dataset cannot be written, or is something else.
    """
    check_dataset(settings)
    plain = settings.writer == "spark"
    writer = plain_writer(spark, settings) if plain else committing_writer(spark, settings)
    writer = writer.queryName("odradek-ingest").option("checkpointLocation", settings.checkpoint_location)
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.trigger_s:g} seconds").start()


def committing_writer(spark: SparkSession, settings: IngestSettings) -> DataStreamWriter:
    """The streaming query whose workers write all tables, and whose driver commits."""
    Dataset(settings.dataset).create()
    of_kafka = settings.source == "kafka"
    if of_kafka:
        from odradek_spark.ingest.kafka_source import streamed

        rows = streamed(spark, settings)
    else:
        rows = spark.readStream.format("odradek").options(**settings.options()).load()
    return rows.writeStream.foreachBatch(CommitBatch(settings.dataset, settings.topic, has_gaps=of_kafka))
