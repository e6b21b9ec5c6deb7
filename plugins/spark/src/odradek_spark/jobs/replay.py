"""Replay: records of the topic are decoded again, and what the tables do not have of them is added.

For what an older decoder could not read, for rows that verification misses, and for a dataset that began
later than its topic. Nothing that is there is written again: a replay that failed halfway is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from odradek_spark.jobs.accepted import SOURCE_KEY
from odradek_spark.jobs.following import REPLAY
from odradek_spark.jobs.writing import write_frame
from odradek_spark.source.data_source import decoder
from odradek_spark.source.offsets import OffsetRange, ranges, tasks
from odradek_spark.source.options import TASK_BYTES, SourceOptions
from odradek_spark.source.topic import TopicReader, clamped
from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.files import Manifest
from odradek_spark.tables.load import load_dataset
from odradek_spark.tables.schemas import BY_NAME, DEAD_LETTER, INGESTED, PUSHES, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_KEY = {
    "points": [*SOURCE_KEY, "src_idx"],
    "histograms": [*SOURCE_KEY, "src_idx"],
    "dead_letter": SOURCE_KEY,
    "pushes": SOURCE_KEY,
}
"""What makes a row of a table the same row."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a run added."""

    records: int
    """That were decoded again, at most."""
    added: dict[str, int]
    """Rows, by table."""


def missing(decoded: DataFrame, there: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows that a table does not have.

    Args:
        decoded: Rows of a table, made again.
        there: The table.
        key: The columns by which a row is known.

    Returns:
        The columns of ``decoded``.
    """
    return decoded.join(there.select(*key).distinct(), list(key), "left_anti").select(*decoded.columns)


def unresolved(dead_letter: DataFrame, pushes: DataFrame) -> DataFrame:
    """The dead letters that are no pushes yet.

    Args:
        dead_letter: The table ``dead_letter``.
        pushes: The table ``pushes``.

    Returns:
        ``src_partition`` int, ``src_offset`` bigint.
    """
    return missing(dead_letter.select(*SOURCE_KEY).distinct(), pushes, SOURCE_KEY)


@dataclass(frozen=True, slots=True)
class RangeDecoder:
    """What a task does: each row is a range of offsets; its records become rows of a table."""

    options: SourceOptions
    table: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = TopicReader(self.options)
        schema = BY_NAME[self.table].schema
        try:
            for batch in batches:
                for row in batch.to_pylist():
                    for records in reader.read(OffsetRange(**row)):
                        decoded = decoder(self.options.max_payload_bytes).decode(records)
                        yield dict(decoded.batches())[self.table].cast(schema)
        finally:
            reader.close()


def decoded_again(
    spark: SparkSession, options: SourceOptions, found: Sequence[OffsetRange], table: Table
) -> DataFrame:
    """The records of some ranges as rows of a table."""
    rows = [(each.partition, each.start, each.end) for each in found]
    pieces = spark.createDataFrame(rows, "partition int, start bigint, end bigint").repartition(len(rows))
    return pieces.mapInArrow(RangeDecoder(options, table.name), from_arrow_schema(table.schema))


def run_replay(
    spark: SparkSession, root: str, options: SourceOptions, wanted: Sequence[OffsetRange] | None = None
) -> Replayed | None:
    """Decode records again and add what is not there.

    Args:
        spark: The session.
        root: Of the dataset.
        options: Where the topic is, and how large a payload may be.
        wanted: The records, all of them such that ingest has passed; None for those that are dead letters.

    Returns:
        None if everything is there, or if another run was faster.

    Raises:
        DatasetError: Nothing has been ingested, or ingest has not come that far.
        TopicError: The topic cannot be read, or does not have the records any more.
    """
    dataset = Dataset(root)
    numbers = {table.name: dataset.committed(table, REPLAY) for table in INGESTED}
    found = dead_letter_ranges(spark, root) if wanted is None else list(wanted)
    pieces = readable(dataset, options, found)
    if not pieces:
        return None
    manifests = {
        table.name: write_frame(
            missing(
                decoded_again(spark, options, pieces, table), known(spark, root, table), ROW_KEY[table.name]
            ),
            root,
            table,
        )
        for table in INGESTED
    }
    if not any(manifests.values()) or not committed(dataset, manifests, numbers):
        return None
    return Replayed(
        sum(each.records for each in pieces),
        {name: sum(each.rows for each in files) for name, files in manifests.items()},
    )


def known(spark: SparkSession, root: str, table: Table) -> DataFrame:
    """The keys that a table has; what is a push is no dead letter either."""
    there = load_dataset(spark, root, table.name).select(*ROW_KEY[table.name])
    if table is DEAD_LETTER:
        return there.unionByName(load_dataset(spark, root, PUSHES.name).select(*SOURCE_KEY))
    return there


def committed(dataset: Dataset, manifests: dict[str, list[Manifest]], numbers: dict[str, int | None]) -> bool:
    """Commit to all tables, ``pushes`` last; those who follow ``points`` wait for it."""
    number = 1 + max(each or 0 for each in numbers.values())
    info = {"job": REPLAY}
    return all(
        dataset.commit_next(table, manifests[table.name], REPLAY, numbers[table.name], number, info)
        for table in INGESTED
    )


def dead_letter_ranges(spark: SparkSession, root: str) -> list[OffsetRange]:
    """Where the dead letters are in the topic."""
    dead_letter, pushes = (load_dataset(spark, root, table.name) for table in (DEAD_LETTER, PUSHES))
    rows = unresolved(dead_letter, pushes).collect()
    return joined(sorted((row["src_partition"], row["src_offset"]) for row in rows))


def joined(offsets: Iterable[tuple[int, int]]) -> list[OffsetRange]:
    """Single offsets, in order, as ranges."""
    found: list[OffsetRange] = []
    for partition, offset in offsets:
        if found and found[-1].partition == partition and found[-1].end == offset:
            found[-1] = OffsetRange(partition, found[-1].start, offset + 1)
        else:
            found.append(OffsetRange(partition, offset, offset + 1))
    return found


def readable(dataset: Dataset, options: SourceOptions, wanted: Sequence[OffsetRange]) -> list[OffsetRange]:
    """The ranges cut into pieces for tasks, after a look at what the topic still has.

    Raises:
        DatasetError: Ingest has not come that far: it would add the same.
        DataLoss: Retention was faster, and that is not allowed.
    """
    if not wanted:
        return []
    partitions = sorted({each.partition for each in wanted})
    passed = dataset.source_offsets(PUSHES, options.topic, partitions)
    for each in wanted:
        if each.end > passed.get(each.partition, 0):
            raise DatasetError(
                f"{options.topic}-{each.partition}: ingest has come to offset "
                f"{passed.get(each.partition, 0)} and not to {each.end}; the rest is for ingest to add"
            )
    reader = TopicReader(options)
    try:
        marks = reader.watermarks(partitions)
        left = [
            piece
            for each in wanted
            for piece in ranges(
                clamped(
                    {each.partition: each.start},
                    {each.partition: each.end},
                    {each.partition: marks[each.partition]},
                    fail=options.fail_on_data_loss,
                    topic=options.topic,
                ),
                {each.partition: each.end},
            )
        ]
        return tasks(left, reader.sizes(left), TASK_BYTES)
    finally:
        reader.close()
