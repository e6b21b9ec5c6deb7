"""Ingest through Spark's own Kafka source, with the same decoder and the same files.

It is for logins that exist in Java only: a ``LoginModule``, a callback handler, a key store. So everything
that asks the brokers is Java here, and the properties of the client are those of Java.

The jar is ``org.apache.spark:spark-sql-kafka-0-10_2.13`` (``--packages``, or ``spark.jars``). A task knows
its range only from its records, so a range may begin after the end of the table: the offsets in between have
no records. So this source cannot detect a checkpoint that is ahead of the tables; the source ``odradek`` can.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql.pandas.types import from_arrow_schema

from odradek_spark.decoder.record import TopicRecord
from odradek_spark.ingest.commit import CommitBatch
from odradek_spark.ingest.failures import NO_JAR
from odradek_spark.source.beginning import ahead, known, settled
from odradek_spark.source.data_source import decoder
from odradek_spark.source.offsets import as_json
from odradek_spark.source.options import SourceOptions, read_options
from odradek_spark.source.task import MANIFEST_SCHEMA, ingest_records
from odradek_spark.source.topic import TopicError, Unreachable
from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.files import exists

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odradek_spark.ingest.settings import IngestSettings

TIMEOUT_MS = 30_000
RECORD_BYTES = 16 << 10
"""Assumed size of a record: this source limits batches by the number of records only."""


@dataclass(frozen=True, slots=True)
class IngestTask:
    """The function for ``mapInArrow``: writes records as files and returns rows that name the files."""

    root: str
    options: SourceOptions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run one task, whose records are of one partition of the topic; it may have none."""
        chunks = (topic_records(batch) for batch in batches if batch.num_rows)
        first = next(chunks, None)
        if first is None:
            return
        yield ingest_records(chain([first], chunks), decoder(self.options), self.root)


def topic_records(batch: pa.RecordBatch) -> list[TopicRecord]:
    """Rows of Spark's Kafka source as records."""
    return [
        TopicRecord(
            row["partition"],
            row["offset"],
            row["ms"],
            row["key"],
            row["value"],
            [(each["key"], each["value"]) for each in row["headers"] or ()],
        )
        for row in batch.to_pylist()
    ]


def kafka_options(settings: IngestSettings) -> dict[str, str]:
    """Options of ``format("kafka")``."""
    return {
        "kafka.bootstrap.servers": settings.bootstrap_servers,
        "subscribe": settings.topic,
        "includeHeaders": "true",
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        "kafka.isolation.level": "read_committed",
        "kafka.enable.metrics.push": "false",
        **{f"kafka.{key}": value for key, value in settings.client.items()},
    }


def manifests(frame: DataFrame, settings: IngestSettings) -> DataFrame:
    """Ingest records; the rows follow `MANIFEST_SCHEMA`."""
    task = IngestTask(settings.dataset, read_options(settings.options()))
    rows = frame.selectExpr("partition", "offset", "unix_millis(timestamp) as ms", "key", "value", "headers")
    return rows.mapInArrow(task, from_arrow_schema(MANIFEST_SCHEMA))


def streamed(spark: SparkSession, settings: IngestSettings) -> DataFrame:
    """The stream of manifests, beginning where the dataset ends.

    If only some tables have the last batch and its checkpoint is lost, that batch is completed first.

    Raises:
        DatasetError: The checkpoint belongs to another dataset.
    """
    options = kafka_options(settings)
    dataset, marks = Dataset(settings.dataset), topic_marks(spark, settings)
    has_begun = exists(f"{settings.checkpoint_location}/metadata")
    if has_begun and not known(dataset, settings.topic, marks):
        raise DatasetError(
            f"{settings.dataset} has no data of {settings.topic} yet, but there is a checkpoint "
            f"{settings.checkpoint_location}: it belongs to another dataset. Delete the checkpoint"
        )
    begin = settled(dataset, settings.topic, marks, latest=settings.starting_offsets == "latest")
    reached = ahead(dataset, settings.topic, begin)
    if reached != begin and not has_begun:
        finish(spark, settings, begin, reached)
        begin = reached
    options["startingOffsets"] = offsets_json(settings, begin)
    options["maxOffsetsPerTrigger"] = str(max(1, settings.max_bytes_per_trigger // RECORD_BYTES))
    return manifests(spark.readStream.format("kafka").options(**options).load(), settings)


def topic_marks(spark: SparkSession, settings: IngestSettings) -> dict[int, tuple[int, int]]:
    """By partition of the topic: the first offset and the end offset (last + 1), asked by Java's client.

    Raises:
        TopicError: The topic is unreadable, the jar is missing, or the session has no JVM of its own.
        Unreachable: No broker answers; a retry may help.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise TopicError("the source kafka does not work with Spark Connect: use the source odradek")
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(java_map(jvm, admin_config(settings)))
    except TypeError:  # py4j takes an unknown class for a package
        raise TopicError(NO_JAR) from None
    except Py4JJavaError as error:
        raise TopicError(f"kafka options: {said(error)}") from error
    try:
        return marks_by(admin, jvm, settings.topic)
    except Py4JJavaError as error:
        kind = Unreachable if "TimeoutException" in str(error.java_exception) else TopicError
        raise kind(f"topic {settings.topic}: {said(error)}") from error
    finally:
        admin.close()


def marks_by(admin: Any, jvm: Any, topic: str) -> dict[int, tuple[int, int]]:
    """The first and end offsets by partition, from an ``Admin`` of Java."""
    kafka = jvm.org.apache.kafka
    described = admin.describeTopics(jvm.java.util.List.of(topic)).allTopicNames().get()
    parts = sorted(each.partition() for each in described[topic].partitions())
    committed = kafka.clients.admin.ListOffsetsOptions(kafka.common.IsolationLevel.READ_COMMITTED)

    def offsets(wanted: Any) -> dict[int, int]:
        asked = java_map(jvm, {kafka.common.TopicPartition(topic, part): wanted for part in parts})
        found = admin.listOffsets(asked, committed).all().get()
        return {each.partition(): found[each].offset() for each in found}

    spec = kafka.clients.admin.OffsetSpec
    first, end = offsets(spec.earliest()), offsets(spec.latest())
    return {part: (first[part], end[part]) for part in parts}


def admin_config(settings: IngestSettings) -> dict[str, str]:
    """The configuration of Java's client, without what only a consumer has."""
    given = {key.partition(".")[2]: value for key, value in kafka_options(settings).items() if "." in key}
    del given["isolation.level"]
    return given | {"default.api.timeout.ms": str(TIMEOUT_MS), "request.timeout.ms": str(TIMEOUT_MS)}


def java_map(jvm: Any, entries: Mapping[Any, Any]) -> Any:
    """A ``java.util.Map``."""
    found = jvm.java.util.HashMap()
    for key, value in entries.items():
        found[key] = value
    return found


def said(error: Py4JJavaError) -> str:
    """The message of the innermost cause."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return " ".join(str(cause.getMessage() or cause.toString()).split())


def finish(
    spark: SparkSession, settings: IngestSettings, begin: Mapping[int, int], end: Mapping[int, int]
) -> None:
    """Ingest the records between two offsets as a batch of their own."""
    options = kafka_options(settings)
    options["startingOffsets"] = offsets_json(settings, begin)
    options["endingOffsets"] = offsets_json(settings, end)
    rows = manifests(spark.read.format("kafka").options(**options).load(), settings)
    CommitBatch(settings.dataset, settings.topic, has_gaps=True)(rows, -1)


def offsets_json(settings: IngestSettings, offsets: Mapping[int, int]) -> str:
    return json.dumps({settings.topic: as_json(offsets)})
