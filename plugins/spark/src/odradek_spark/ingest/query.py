"""The streaming query that ingests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek_spark.ingest.commit import CommitBatch
from odradek_spark.ingest.dataset_root import check_root
from odradek_spark.ingest.plain_writer import is_plain, plain_writer
from odradek_spark.source.options import (
    DEFAULT_PAYLOAD_BYTES,
    DEFAULT_TRIGGER_BYTES,
    TELEMETRY_TOPIC,
    OptionError,
    read_options,
)
from odradek_spark.source.topic import TopicReader
from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.schemas import POINTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LOOK_S = 10.0
"""How long a broker may take to answer before anything has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """From where, to where, and how much at once."""

    bootstrap_servers: str
    dataset: str
    topic: str = TELEMETRY_TOPIC
    source: str = "odradek"
    """``odradek``, or ``kafka`` for Spark's own source, whose jar the session then needs."""
    writer: str = "worker"
    """``worker``, or ``spark`` for points alone by Spark's own writer; see `plain_writer`."""
    checkpoint: str = ""
    """Where Spark keeps what it has planned; by default ``_checkpoints/ingest`` in the dataset."""
    trigger_s: float = 60.0
    max_bytes_per_trigger: int = DEFAULT_TRIGGER_BYTES
    min_bytes_per_trigger: int = 0
    max_payload_bytes: int = DEFAULT_PAYLOAD_BYTES
    fail_on_data_loss: bool = True
    starting_offsets: str = "earliest"
    client: Mapping[str, str] = field(default_factory=dict)
    """More options of librdkafka: TLS, SASL."""

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises:
            OptionError: It does not.
        """
        if self.source == "kafka" and self.writer == "spark":
            raise OptionError("writer=spark reads by the source odradek")
        if self.source == "kafka" and self.min_bytes_per_trigger:
            raise OptionError(
                "the source kafka knows no sizes: min.bytes.per.trigger is for the source odradek"
            )

    @property
    def checkpoint_location(self) -> str:
        """The checkpoint that counts."""
        return self.checkpoint or f"{self.dataset.rstrip('/')}/_checkpoints/ingest"

    def options(self) -> dict[str, str]:
        """The options of ``format("odradek")``."""
        name = self.dataset.rstrip("/").rpartition("/")[2]
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "topic": self.topic,
            "rows": "manifests",
            "dataset": self.dataset,
            "group": f"odradek.spark.{name}",
            "maxBytesPerTrigger": str(self.max_bytes_per_trigger),
            "minBytesPerTrigger": str(self.min_bytes_per_trigger),
            "maxPayloadBytes": str(self.max_payload_bytes),
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            "startingOffsets": self.starting_offsets,
            **{f"kafka.{key}": value for key, value in self.client.items()},
        }


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
