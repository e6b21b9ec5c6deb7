"""The topic as Spark reads it: it plans with these readers on the driver and reads with them in its workers.

Offsets are ``{topic: {partition: next offset}}``, as those of Spark's Kafka connector. Ranges are
deterministic: Spark stores the end of a batch before it runs it, so a repeated batch reads the same records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

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
from odradek_spark.source.options import EARLIEST, LATEST, OptionError, Position, ReadOptions
from odradek_spark.source.topic import TopicReader
from odradek_tables.decoder.topic_record import TopicRecord

TASK_BYTES = 128 << 20
"""Approximate bytes of uncompressed payloads in a task; about 13 MB in the topic."""
GROUP_BYTES = 16 << 20
"""Ranges of several partitions share a task up to so many bytes: they are decoded in a tenth of a second."""
MS_PER_S = 1_000
US_PER_MS = 1_000
Cut = Callable[[Offsets, Offsets], Offsets]
"""Shortens a backlog between two offsets to the limit of a batch; returns the new end."""

RECORDS = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""The columns of Spark's Kafka connector."""


@dataclass
class Piece(InputPartition):
    """The ranges that one task reads."""

    ranges: tuple[OffsetRange, ...]


def row_schema(options: ReadOptions) -> pa.Schema:
    return RECORDS if options.include_headers else RECORDS.remove(RECORDS.names.index("headers"))


class TopicBatch(DataSourceReader):
    """Reads from one position to another."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        with closing(TopicReader(self.options)) as reader:
            marks = reader.watermarks(reader.partitions())
            begin = resolved(reader, marks, self.options.starting or Position(EARLIEST))
            end = resolved(reader, marks, self.options.ending)
            return planned(reader, reader.reachable(begin, end, marks), end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_piece(self.options, partition)


class TopicStream(DataSourceStreamReader):
    """Reads the topic as it grows. Before Spark 4.2 a batch has everything that is there."""

    def __init__(self, options: ReadOptions, now_s: Callable[[], float] = time.monotonic) -> None:
        self.options = options
        self.now_s = now_s
        self.reader: TopicReader | None = None
        self.last_offsets: Offsets | None = None
        """The end of a query with ``AvailableNow``; None for other triggers."""
        self.begun_s = float("-inf")
        """The time of the last batch."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.options,)  # a worker has a consumer of its own

    @property
    def topic(self) -> TopicReader:
        """The reader that plans, opened when it is needed."""
        if self.reader is None:
            self.reader = TopicReader(self.options)
        return self.reader

    def marks(self) -> dict[int, tuple[int, int]]:
        """By partition: the first offset, and the end offset of committed records (last + 1)."""
        return self.topic.watermarks(self.topic.partitions())

    def shown(self, offsets: Mapping[int, int]) -> dict[str, Any]:
        return {self.options.topic: as_json(offsets)}

    def read_back(self, offsets: Mapping[str, Any]) -> Offsets:
        return from_json(offsets.get(self.options.topic, offsets))

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """The position that the options set, the end by default."""
        marks = self.marks()
        start = self.options.starting or Position(LATEST)
        found = resolved(self.topic, marks, start, fail=self.options.fail_without_timestamp)
        return self.shown(found)

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802  as before Spark 4.2
        return self.shown(self.ends())

    def ends(self) -> Offsets:
        return {part: end for part, (_, end) in self.marks().items()}

    def next_end(self, start: Mapping[str, Any], cut: Cut) -> dict[str, Any]:
        """The end of the next batch; ``start`` is that of the last one."""
        begin, marks = self.read_back(start), self.marks()
        for partition in marks:
            begin.setdefault(partition, 0)  # a partition that was added to the topic
        end = {
            partition: max(begin[partition], self.bounded(partition, stop))
            for partition, (_, stop) in marks.items()
        }
        reachable = self.topic.reachable(begin, end, marks)
        if not backlog(begin, end) or self.is_little(reachable, end):
            return self.shown(begin)
        self.begun_s = self.now_s()
        return self.shown(cut(reachable, end))

    def bounded(self, partition: int, stop: int) -> int:
        """The end of a partition, limited to where ``AvailableNow`` stops."""
        return stop if self.last_offsets is None else min(stop, self.last_offsets.get(partition, 0))

    def is_little(self, begin: Offsets, end: Offsets) -> bool:
        """Whether to wait for more records; never with ``AvailableNow``."""
        found = self.options
        is_late = (self.now_s() - self.begun_s) * MS_PER_S >= found.max_delay_ms
        if self.last_offsets is not None or is_late:
            return False
        return backlog(begin, end) < found.min_offsets or (
            found.min_bytes > 0 and self.waiting_bytes(begin, end) < found.min_bytes
        )

    def waiting_bytes(self, begin: Offsets, end: Offsets) -> float:
        left = ranges(begin, end)
        sizes = self.topic.sizes(left)
        return sum(each.records * sizes.get(each.partition, 0.0) for each in left)

    def within_bytes(self, begin: Offsets, end: Offsets, max_bytes: int) -> Offsets:
        return limited(begin, end, self.topic.sizes(ranges(begin, end)), max_bytes)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, stop = self.read_back(start), self.read_back(end)
        if begin == stop:
            return []
        marks = self.topic.watermarks(list(stop))
        for partition in marks:
            begin.setdefault(partition, 0)
        return planned(self.topic, self.topic.reachable(begin, stop, marks), stop)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_piece(self.options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        self.topic.show_progress(self.read_back(end))

    def stop(self) -> None:
        if self.reader is not None:
            self.reader.close()


def resolved(
    reader: TopicReader, marks: Mapping[int, tuple[int, int]], at: Position, *, fail: bool = False
) -> Offsets:
    """By partition, the offset of a position; the end if no record is as young, unless ``fail`` is set.

    Raises:
        OptionError: The topic does not have a partition, or no record is as young.
    """
    missing = sorted({*at.offsets, *at.timestamps_ms} - marks.keys())
    if missing:
        raise OptionError(f"{reader.options.topic} has no partition {missing[0]}: correct the offsets")
    found = {}
    for partition, (first, end) in marks.items():
        at_ms = at.time_of(partition)
        if at_ms is None:
            offset = at.offsets.get(partition, at.default)
            found[partition] = {EARLIEST: first, LATEST: end}.get(offset, offset)
            continue
        since = reader.offsets_since([partition], at_ms)
        if fail and partition not in since:
            raise OptionError(
                f"{reader.options.topic}-{partition} has no record since {at_ms}: choose an earlier time, or "
                "set startingOffsetsByTimestampStrategy to latest"
            )
        found[partition] = since.get(partition, end)
    return found


def planned(reader: TopicReader, begin: Offsets, end: Offsets) -> list[InputPartition]:
    options, found = reader.options, ranges(begin, end)
    sizes = reader.sizes(found)
    task_bytes, group_bytes = TASK_BYTES, GROUP_BYTES
    if options.min_partitions:
        total = sum(each.records * max(1.0, sizes.get(each.partition, 1.0)) for each in found)
        task_bytes, group_bytes = min(task_bytes, max(1, int(total / options.min_partitions))), 0
    pieces = tasks(found, sizes, task_bytes, options.max_records_per_partition)
    if options.max_records_per_partition is not None:
        group_bytes = 0
    return [Piece(each) for each in grouped(pieces, sizes, group_bytes)]


def read_piece(options: ReadOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, Piece)
    with closing(TopicReader(options)) as reader:
        for each in partition.ranges:
            for records in reader.read(each):
                yield record_rows(records, options)


def record_rows(records: Sequence[TopicRecord], options: ReadOptions) -> pa.RecordBatch:
    """The rows of records; headers are null for a record without any, as the connector has it."""
    topic = options.topic
    rows = [
        (key, value, topic, part, offset, timestamp_ms * US_PER_MS, kind, headers or None)
        for part, offset, timestamp_ms, key, value, headers, kind in records
    ]
    found = pa.RecordBatch.from_struct_array(pa.array(rows, pa.struct(RECORDS)))
    return found.select(row_schema(options).names)
