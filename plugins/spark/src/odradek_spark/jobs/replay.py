"""Replay: records of the topic are decoded again, and what the tables do not have of them is added.

For what an older decoder could not read, for rows that verification misses, and for a dataset that began
later than its topic. Nothing that is there is written again: a replay that failed halfway is repeated. Nor is
what retention took out of the tables: the rollups have it, and would count it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from odradek_spark.ingest.status import NOTHING, Totals
from odradek_spark.jobs.absent import Absent
from odradek_spark.jobs.accepted import SOURCE_KEY
from odradek_spark.jobs.following import REPLAY
from odradek_spark.jobs.verify import expired_before
from odradek_spark.source.data_source import decoder
from odradek_spark.source.offsets import OffsetRange, ranges, tasks
from odradek_spark.source.options import TASK_BYTES, SourceOptions
from odradek_spark.source.task import FILE, MANIFEST_SCHEMA, RangeReport, Written, manifest_rows
from odradek_spark.source.topic import TopicReader, clamped
from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.files import Manifest
from odradek_spark.tables.load import load_dataset
from odradek_spark.tables.schemas import DEAD_LETTER, INGESTED, PUSHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAVE_ROUNDS = 4
"""A wave, which ends with a commit, has so many times as many tasks as a shuffle has."""
Show = Callable[[Totals, int], object]
"""Takes what was decoded since the start, and how many records wait."""


@dataclass(slots=True)
class Replayed:
    """What a run did."""

    decoded: Totals = NOTHING
    """What was in the records; ``batches`` are commits."""
    added: dict[str, int] = field(default_factory=lambda: {table.name: 0 for table in INGESTED})
    """Rows, by table."""


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """What ``mapInArrow`` runs: each row is the number of a range, decoded once for all tables."""

    root: str
    options: SourceOptions
    pieces: tuple[OffsetRange, ...]
    kept_from: Mapping[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The files that were written, as ingest names them."""
        reader = TopicReader(self.options)
        try:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    yield self.replayed(reader, self.pieces[number])
        finally:
            reader.close()

    def replayed(self, reader: TopicReader, found: OffsetRange) -> pa.RecordBatch:
        """Write what the tables do not have of a range."""
        written = Written()
        absent = Absent(Dataset(self.root), found, self.kept_from)
        records = reader.read(found)
        manifests = written.files(records, decoder(self.options.max_payload_bytes), self.root, absent)
        return manifest_rows(manifests, written.report(found, reader.lost))


def run_replay(
    spark: SparkSession,
    root: str,
    options: SourceOptions,
    wanted: Sequence[OffsetRange] | None = None,
    show: Show = lambda decoded, waiting: None,
) -> Replayed:
    """Decode records again and add what is not there, wave by wave: each ends with a commit.

    Args:
        spark: The session.
        root: Of the dataset.
        options: Where the topic is, and how large a payload may be.
        wanted: The records, all of them such that ingest has passed; None for those that are dead letters.
        show: Called after each wave.

    Raises:
        DatasetError: Nothing has been ingested, or ingest has not come that far; or another replay
            was faster.
        TopicError: The topic cannot be read, or does not have the records any more.
    """
    dataset = Dataset(root)
    found = dead_letter_ranges(spark, root) if wanted is None else list(wanted)
    pieces = readable(dataset, options, found)
    done = Replayed()
    at_once = WAVE_ROUNDS * int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    for first in range(0, len(pieces), at_once):
        add_wave(spark, dataset, options, pieces[first : first + at_once], done)
        show(done.decoded, sum(each.records for each in pieces[first + at_once :]))
    return done


def add_wave(
    spark: SparkSession,
    dataset: Dataset,
    options: SourceOptions,
    pieces: Sequence[OffsetRange],
    done: Replayed,
) -> None:
    """Decode some pieces, all at the same time, and commit."""
    numbers = {table.name: dataset.committed(table, REPLAY) for table in INGESTED}
    kept_from = {table.name: expired_before(dataset, table) for table in INGESTED}
    task = ReplayTask(dataset.root, options, tuple(pieces), kept_from)
    one_each = spark.range(0, len(pieces), 1, len(pieces))
    found = one_each.mapInArrow(task, from_arrow_schema(MANIFEST_SCHEMA)).collect()
    manifests = [Manifest.parse(row["body"]) for row in found if row["kind"] == FILE]
    reports = [RangeReport.parse(row["body"]) for row in found if row["kind"] != FILE]
    if manifests:
        commit(dataset, manifests, numbers)
    done.decoded += Totals(
        int(bool(manifests)),
        sum(each.pushes for each in reports),
        sum(each.points for each in reports),
        sum(each.dead_letters for each in reports),
    )
    for each in manifests:
        done.added[each.table] += each.rows


def commit(dataset: Dataset, manifests: Sequence[Manifest], numbers: dict[str, int | None]) -> None:
    """Commit to all tables, ``pushes`` last; those who follow ``points`` wait for it.

    Raises:
        DatasetError: Another replay committed since ``numbers`` were read, and may have added the same.
    """
    number = 1 + max(each or 0 for each in numbers.values())
    for table in INGESTED:
        files = [each for each in manifests if each.table == table.name]
        if not dataset.commit_next(table, files, REPLAY, numbers[table.name], number, {"job": REPLAY}):
            raise DatasetError(f"{dataset.root}: another replay is at work; start again when it is through")


def unresolved(dead_letter: DataFrame, pushes: DataFrame) -> DataFrame:
    """The dead letters that are no pushes yet.

    Args:
        dead_letter: The table ``dead_letter``.
        pushes: The table ``pushes``.

    Returns:
        ``src_partition`` int, ``src_offset`` bigint.
    """
    return dead_letter.select(*SOURCE_KEY).distinct().join(pushes, SOURCE_KEY, "left_anti")


def dead_letter_ranges(spark: SparkSession, root: str) -> list[OffsetRange]:
    """Where the dead letters are in the topic."""
    dead_letter, pushes = (load_dataset(spark, root, table.name) for table in (DEAD_LETTER, PUSHES))
    rows = unresolved(dead_letter, pushes).collect()
    return joined(sorted((row["src_partition"], row["src_offset"]) for row in rows))


def check_replay(root: str, options: SourceOptions) -> None:
    """See that there is a dataset and a topic, which needs no Spark.

    Raises:
        DatasetError: Nothing has been ingested.
        TopicError: The topic cannot be read.
    """
    Dataset(root).existing(PUSHES)
    reader = TopicReader(options)
    try:
        reader.partitions()
    finally:
        reader.close()


def ranges_since(root: str, options: SourceOptions, since: datetime) -> list[OffsetRange]:
    """What the topic has from a time on, as far as ingest has come.

    Args:
        root: Of the dataset.
        options: Where the topic is.
        since: When the host received the first of them; with a time zone.

    Raises:
        TopicError: The topic cannot be read.
    """
    reader = TopicReader(options)
    try:
        partitions = reader.partitions()
        begin = reader.offsets_since(partitions, round(since.timestamp() * 1000))
    finally:
        reader.close()
    return ranges(begin, Dataset(root).source_offsets(PUSHES, options.topic, partitions))


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
