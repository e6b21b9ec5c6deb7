"""The data source: Spark plans with it on the driver and reads with it in the Python workers.

Offsets are ``{partition: next offset}``. Ranges are deterministic: Spark stores the end of a batch before it
runs it, so a repeated batch reads the same records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from odradek_spark.decoder.decode import Decoder, DecoderSettings
from odradek_spark.decoder.record import TopicRecord
from odradek_spark.source.beginning import ahead, settled
from odradek_spark.source.offsets import (
    OffsetRange,
    Offsets,
    as_json,
    backlog,
    from_json,
    grouped,
    limited,
    ranges,
    tasks,
)
from odradek_spark.source.options import GROUP_BYTES, TASK_BYTES, Rows, SourceOptions, read_options
from odradek_spark.source.task import MANIFEST_SCHEMA, ingest_ranges, lost_range
from odradek_spark.source.topic import TopicReader, clamped
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import POINTS, TIMESTAMP

RECORDS = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
SCHEMAS = {Rows.POINTS: POINTS.schema, Rows.RECORDS: RECORDS, Rows.MANIFESTS: MANIFEST_SCHEMA}


@dataclass
class Piece(InputPartition):
    """The ranges that one task reads."""

    ranges: tuple[OffsetRange, ...]
    is_deleted: bool = False
    """Whether retention deleted the range, which then counts as read."""


class OdradekDataSource(DataSource):
    """The source ``format("odradek")``, after ``spark.dataSource.register(OdradekDataSource)``."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.read_options = read_options(options)

    @classmethod
    def name(cls) -> str:
        return "odradek"

    def schema(self) -> StructType:
        return from_arrow_schema(SCHEMAS[self.read_options.rows])

    def reader(self, schema: StructType) -> DataSourceReader:
        return TopicBatchReader(self.read_options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        return TopicStreamReader(self.read_options)


class TopicBatchReader(DataSourceReader):
    """Reads everything that is in the topic now."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        reader = TopicReader(self.options)
        try:
            marks = reader.watermarks(reader.partitions())
            found = ranges(
                {partition: first for partition, (first, _) in marks.items()},
                {partition: end for partition, (_, end) in marks.items()},
            )
            return planned(found, reader.sizes(found))
        finally:
            reader.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_piece(self.options, partition)


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the topic as it grows. Spark plans in one long-lived process and reads in others."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.last_offsets: Offsets | None = None
        """The end of a query with ``AvailableNow``; None for other triggers."""

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "last_offsets": None}

    @property
    def topic(self) -> TopicReader:
        """The reader that all planning in this process shares."""
        return planner(tuple(sorted(self.options.client.items())), self.options)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The end of the dataset if there is one; otherwise the position that the option sets."""
        marks = self.topic.watermarks(self.topic.partitions())
        latest = self.options.starting_offsets == "latest"
        if self.options.dataset:
            return as_json(settled(Dataset(self.options.dataset), self.options.topic, marks, latest=latest))
        return as_json({partition: end if latest else first for partition, (first, end) in marks.items()})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self.options.max_bytes_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.last_offsets = self.ends()

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return as_json(self.ends())

    def ends(self) -> Offsets:
        """The end of the committed records, by partition."""
        return {part: end for part, (_, end) in self.topic.watermarks(self.topic.partitions()).items()}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next batch."""
        begin = from_json(start)
        marks = self.topic.watermarks(self.topic.partitions())
        for partition in marks:
            begin.setdefault(partition, 0)  # a partition that was added to the topic
        end = {
            partition: max(begin[partition], self.bounded(partition, stop))
            for partition, (_, stop) in marks.items()
        }
        reachable = self.reachable(begin, end, marks)
        if not backlog(begin, end):
            return as_json(begin)
        unfinished = self.unfinished_batch(begin)
        if unfinished is not None:
            return as_json(unfinished)
        sizes = self.topic.sizes(ranges(reachable, end))
        if self.is_little(reachable, end, sizes):
            return as_json(begin)
        if isinstance(limit, ReadAllAvailable):
            return as_json(end)
        max_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self.options.max_bytes_per_trigger
        return as_json(limited(reachable, end, sizes, max_bytes))

    def reachable(self, begin: Offsets, end: Offsets, marks: Mapping[int, tuple[int, int]]) -> Offsets:
        """The beginning of a batch, after the offsets that retention has deleted."""
        fail = self.options.fail_on_data_loss
        return clamped(begin, end, marks, fail=fail, topic=self.options.topic)

    def bounded(self, partition: int, stop: int) -> int:
        """The end of a partition, limited to where ``AvailableNow`` stops."""
        return stop if self.last_offsets is None else min(stop, self.last_offsets.get(partition, 0))

    def is_little(self, begin: Offsets, end: Offsets, sizes: dict[int, float]) -> bool:
        """Whether to wait for more records; never with ``AvailableNow``."""
        if self.last_offsets is not None or not self.options.min_bytes_per_trigger:
            return False
        waiting = sum(each.records * sizes.get(each.partition, 0.0) for each in ranges(begin, end))
        return waiting < self.options.min_bytes_per_trigger

    def unfinished_batch(self, begin: Offsets) -> Offsets | None:
        """The end of a batch that only some tables have and whose checkpoint is lost; None without one.

        The first batch then ends there too, so that the tables that already have it can skip it.
        """
        if not self.options.dataset:
            return None
        reached = ahead(followed(self.options.dataset), self.options.topic, begin)
        return reached if reached != begin else None

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        begin, stop = from_json(start), from_json(end)
        marks = self.topic.watermarks(list(stop))
        for partition in marks:
            begin.setdefault(partition, 0)
        reachable = self.reachable(begin, stop, marks)
        found = ranges(reachable, stop)
        deleted = (Piece((each,), is_deleted=True) for each in ranges(begin, reachable))
        return [*planned(found, self.topic.sizes(found)), *deleted]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_piece(self.options, partition)

    def commit(self, end: dict[str, int]) -> None:
        self.topic.show_progress(from_json(end))


def planned(found: list[OffsetRange], record_bytes: Mapping[int, float]) -> list[InputPartition]:
    """The tasks that read ranges whose records have these mean sizes, by partition."""
    pieces = tasks(found, record_bytes, TASK_BYTES)
    return [Piece(each) for each in grouped(pieces, record_bytes, GROUP_BYTES)]


PLANNERS: dict[tuple[tuple[str, str], ...], TopicReader] = {}


def planner(client: tuple[tuple[str, str], ...], options: SourceOptions) -> TopicReader:
    """The planning reader of this process for a cluster and topic."""
    fail = str(options.fail_on_data_loss)
    key = (*client, ("topic", options.topic), ("group", options.group), ("fail", fail))
    if key not in PLANNERS:
        PLANNERS[key] = TopicReader(options)
    return PLANNERS[key]


@cache
def followed(root: str) -> Dataset:
    """The dataset that all planning in this process looks at before each batch."""
    return Dataset(root, follows=True)


def decoder(options: SourceOptions) -> Decoder:
    """The decoder of this worker process. It outlives tasks, and so do its caches."""
    settings = DecoderSettings(
        max_payload_bytes=options.max_payload_bytes,
        topic_format=options.topic_format,
        interval_ms=options.topic_interval_ms,
    )
    return lasting_decoder(settings)


@cache
def lasting_decoder(settings: DecoderSettings) -> Decoder:
    return Decoder(settings)


def read_piece(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one task."""
    assert isinstance(partition, Piece)
    if partition.is_deleted:
        if options.rows is Rows.MANIFESTS:
            yield lost_range(*partition.ranges)
        return
    reader = TopicReader(options)
    try:
        if options.rows is Rows.MANIFESTS:
            yield ingest_ranges(reader, decoder(options), options.dataset, partition.ranges)
            return
        for each in partition.ranges:
            for records in reader.read(each):
                if options.rows is Rows.RECORDS:
                    yield record_rows(records)
                else:
                    yield plain(decoder(options).decode(records).points)
    finally:
        reader.close()


def plain(points: pa.RecordBatch) -> pa.RecordBatch:
    """Replace dictionary columns by plain text, which the JVM can read."""
    return points.cast(POINTS.schema)


def record_rows(records: Sequence[TopicRecord]) -> pa.RecordBatch:
    """Undecoded records as rows."""
    return pa.RecordBatch.from_pydict(
        {
            "partition": [each.partition for each in records],
            "offset": [each.offset for each in records],
            "timestamp": [each.timestamp_ms * 1000 for each in records],
            "key": [each.key for each in records],
            "value": [each.value for each in records],
            "headers": [[{"key": name, "value": value} for name, value in each.headers] for each in records],
        },
        RECORDS,
    )
