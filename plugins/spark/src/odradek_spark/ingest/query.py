"""The streaming query that ingests."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

from pyarrow import fs

from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.sink.dataset_root import check_name, check_root
from odradek_spark.source.offsets import Offsets, as_json
from odradek_spark.source.options import EARLIEST, read_options
from odradek_spark.source.topic import TopicReader
from odradek_tables.dataset import Dataset
from odradek_tables.files import file_system
from odradek_tables.schemas import INGESTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S = 10.0
"""Time limit for an answer of a broker in the check before ingest starts."""


def check_ingest(settings: IngestSettings) -> None:
    """Check without Spark that the topic is readable and the dataset writable.

    Raises:
        DatasetError: The dataset is not writable, or not a dataset.
        TopicError: The topic does not exist, or access is denied.
        Unreachable: No broker answers; a retry may help.
    """
    check_folders(settings)
    with closing(TopicReader(read_options(settings.source_options()), LOOK_S)) as reader:
        reader.partitions()
    Dataset(settings.dataset).create()


def check_folders(settings: IngestSettings) -> None:
    check_name(settings.checkpoint_location)
    check_root(settings.dataset)


def start_ingest(spark: SparkSession, settings: IngestSettings, *, once: bool) -> StreamingQuery:
    """Start to ingest; with ``once`` until everything that is in the topic now is in the tables.

    Raises:
        DatasetError: The dataset is not writable or not a dataset.
    """
    check_folders(settings)
    source = spark.readStream.format("odradek").options(**settings.source_options())
    source = source.options(**settings.stream_options())
    sink = settings.sink_options()
    if not has_begun(settings.checkpoint_location):
        begin = continued(spark, settings)
        if begin:
            source = source.option("startingOffsets", offsets_json(settings, begin))
            sink["allowNewCheckpoint"] = "true"
    writer = source.load().writeStream.format("odradek").options(**sink).queryName("odradek-ingest")
    writer = writer.option("checkpointLocation", settings.checkpoint_location)
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.trigger_ms} milliseconds").start()


def has_begun(checkpoint: str) -> bool:
    """Whether Spark has stored offsets of a batch; before that, a query begins where its options say."""
    system, base = file_system(checkpoint)
    found = system.get_file_info(fs.FileSelector(f"{base}/offsets", allow_not_found=True))
    return any(each.base_name.isdecimal() for each in found)


def continued(spark: SparkSession, settings: IngestSettings) -> Offsets:
    """The offsets at which a query without a checkpoint continues the tables; empty for new tables.

    A batch that only some tables have is completed first, as a batch of its own.
    """
    dataset = Dataset(settings.dataset)
    with closing(TopicReader(read_options(settings.source_options()))) as reader:
        partitions = reader.partitions()
    begin = dataset.source_offsets(INGESTED[-1], settings.topic, partitions)
    reached = dict(begin)
    for table in INGESTED:
        for part, end in dataset.source_offsets(table, settings.topic, partitions).items():
            reached[part] = max(end, reached.get(part, 0))
    if reached != begin:
        missing = {part: begin.get(part, EARLIEST) for part in partitions}
        offsets = {
            "startingOffsets": offsets_json(settings, missing),
            "endingOffsets": offsets_json(settings, {part: reached.get(part, 0) for part in partitions}),
        }
        rows = spark.read.format("odradek").options(**settings.source_options(), **offsets).load()
        rows.write.format("odradek").options(**settings.sink_options()).mode("append").save()
    return reached


def offsets_json(settings: IngestSettings, offsets: Offsets) -> str:
    return json.dumps({settings.topic: as_json(offsets)})
