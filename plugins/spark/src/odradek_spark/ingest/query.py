"""The streaming query that ingests."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from odradek_spark.ingest.commit import CommitBatch
from odradek_spark.ingest.dataset_root import check_name, check_root
from odradek_spark.ingest.settings import KAFKA, IngestSettings
from odradek_spark.source.options import read_options
from odradek_spark.source.topic import TopicReader
from odradek_spark.tables.dataset import Dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LOOK_S = 10.0
"""Time limit for an answer of a broker in the check before ingest starts."""


def check_ingest(settings: IngestSettings) -> None:
    """Check without Spark that the topic is readable and the dataset writable.

    The topic of the source ``kafka`` is not checked: only Java may be able to log in.

    Raises:
        DatasetError: The dataset is not writable, or not a dataset.
        TopicError: The topic does not exist, or access is denied.
        Unreachable: No broker answers; a retry may help.
    """
    check_folders(settings)
    if settings.source != KAFKA:
        with closing(TopicReader(read_options(settings.options()), LOOK_S)) as reader:
            reader.partitions()
    Dataset(settings.dataset).create()


def check_folders(settings: IngestSettings) -> None:
    """Check the folders of the dataset and of the checkpoint, without writing anything.

    Raises:
        DatasetError: The dataset is not a dataset or unreadable, or some readers cannot open such a path.
    """
    check_name(settings.checkpoint_location)
    check_root(settings.dataset)


def start_ingest(spark: SparkSession, settings: IngestSettings, *, once: bool) -> StreamingQuery:
    """Start to ingest.

    Args:
        spark: A session with the source registered.
        settings: The settings.
        once: Stop once everything that is in the topic now is in the tables; otherwise continue.

    Raises:
        DatasetError: The dataset is not writable or not a dataset.
    """
    check_folders(settings)
    writer = committing_writer(spark, settings)
    writer.queryName("odradek-ingest").option("checkpointLocation", settings.checkpoint_location)
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.trigger_s:g} seconds").start()


def committing_writer(spark: SparkSession, settings: IngestSettings) -> DataStreamWriter:
    """The streaming query, not started yet, whose workers write all tables and whose driver commits."""
    Dataset(settings.dataset).create()
    of_kafka = settings.source == KAFKA
    if of_kafka:
        from odradek_spark.ingest.kafka_source import streamed

        rows = streamed(spark, settings)
    else:
        rows = spark.readStream.format("odradek").options(**settings.options()).load()
    return rows.writeStream.foreachBatch(CommitBatch(settings.dataset, settings.topic, has_gaps=of_kafka))
