"""Replay: decodes records of the topic again and adds the rows that the tables lack.

It is for records that an older decoder could not read, for rows that verification reports as missing, and for
a dataset that began later than its topic. Existing rows are not written again, so a failed replay can be
repeated. Rows that expired are not added again either: the rollups would count them twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from odradek_spark.jobs.accepted import SOURCE_KEY
from odradek_spark.jobs.verify import expired_before
from odradek_spark.load import load_dataset
from odradek_spark.sink.written import Written, write_records
from odradek_spark.source.offsets import OffsetRange, ranges, tasks
from odradek_spark.source.options import ReadOptions
from odradek_spark.source.stream import TASK_BYTES
from odradek_spark.source.topic import TopicReader
from odradek_tables.dataset import JOB, Dataset, DatasetError
from odradek_tables.decoder.decode import Counts, DecoderSettings, lasting_decoder
from odradek_tables.files import Manifest
from odradek_tables.following import REPLAY, REPLAYED, erased_ranges, joined, spans_in
from odradek_tables.schemas import BY_NAME, DEAD_LETTER, INGESTED, PUSHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECODING = DecoderSettings()
WAVE_ROUNDS = 4
"""Tasks of a wave, as a multiple of the tasks of a shuffle. Each wave ends with a commit."""
PARTITION, OFFSET, INDEX = *SOURCE_KEY, "src_idx"
INDEX_BITS = 32
Show = Callable[[Counts, int], object]
"""Called with the totals decoded since the start, and the number of waiting records."""


@dataclass(slots=True)
class Replayed:
    decoded: Counts = field(default_factory=Counts)
    """The contents of the records; ``batches`` counts commits."""
    added: dict[str, int] = field(default_factory=lambda: {table.name: 0 for table in INGESTED})
    """Number of added rows, by table."""


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """The function for ``mapInArrow``. Each input row is the number of a range, which is decoded once."""

    root: str
    options: ReadOptions
    decoding: DecoderSettings
    pieces: tuple[OffsetRange, ...]
    kept_from: Mapping[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with closing(TopicReader(self.options)) as reader:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    yield self.replayed(reader, self.pieces[number])

    def replayed(self, reader: TopicReader, found: OffsetRange) -> pa.RecordBatch:
        written = Written()
        absent = Absent(Dataset(self.root), found, self.kept_from)
        write_records(reader.read(found), lasting_decoder(self.decoding), self.root, written, absent)
        files = [asdict(each) for each in written.manifests]
        return pa.record_batch({"done": [json.dumps({"files": files, "counts": asdict(written.counts)})]})


def run_replay(
    spark: SparkSession,
    root: str,
    options: ReadOptions,
    wanted: Sequence[OffsetRange] | None = None,
    show: Show = lambda decoded, waiting: None,
    decoding: DecoderSettings = DECODING,
) -> Replayed:
    """Decode records again and add the missing rows, in waves that each end with a commit.

    Args:
        spark: The session.
        root: Path or URI of the dataset.
        options: The topic.
        wanted: The records, which ingest must have passed; None for those that are dead letters.
        show: Called after each wave.
        decoding: The format of the topic, and the limit of a payload.

    Raises:
        DatasetError: Nothing has been ingested, ingest has not passed the records yet, or another replay was
            faster.
        TopicError: The topic is unreadable, or no longer has the records.
    """
    dataset = Dataset(root)
    found = dead_letter_ranges(spark, root) if wanted is None else list(wanted)
    pieces = readable(dataset, options, found)
    done = Replayed()
    at_once = WAVE_ROUNDS * int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    for first in range(0, len(pieces), at_once):
        add_wave(spark, dataset, options, decoding, pieces[first : first + at_once], done)
        show(done.decoded, sum(each.records for each in pieces[first + at_once :]))
    return done


def add_wave(
    spark: SparkSession,
    dataset: Dataset,
    options: ReadOptions,
    decoding: DecoderSettings,
    pieces: Sequence[OffsetRange],
    done: Replayed,
) -> None:
    numbers = {table.name: dataset.committed(table, REPLAY) for table in INGESTED}
    kept_from = {table.name: expired_before(dataset, table) for table in INGESTED}
    task = ReplayTask(dataset.root, options, decoding, tuple(pieces), kept_from)
    one_each = spark.range(0, len(pieces), 1, len(pieces))
    found = [json.loads(row["done"]) for row in one_each.mapInArrow(task, "done string").collect()]
    manifests = [Manifest(**file) for each in found for file in each["files"]]
    counts = sum((Counts(**each["counts"]) for each in found), Counts(batches=int(bool(manifests))))
    if manifests:
        commit(dataset, manifests, numbers)
    done.decoded += counts
    for each in manifests:
        done.added[each.table] += each.rows


def commit(dataset: Dataset, manifests: Sequence[Manifest], numbers: dict[str, int | None]) -> None:
    """Commit to all tables, ``pushes`` last, because the jobs that follow ``points`` wait for it.

    Raises:
        DatasetError: Another replay committed since ``numbers`` were read, and may have added the same rows.
    """
    number = 1 + max(each or 0 for each in numbers.values())
    added = {table: [each for each in manifests if each.table == table.name] for table in INGESTED}
    info: dict[str, object] = {JOB: REPLAY, REPLAYED: spans_in(dataset, added[PUSHES])}
    info |= {table.name: sum(each.rows for each in files) for table, files in added.items()}
    for table, files in added.items():
        if not dataset.commit_next(table, files, REPLAY, numbers[table.name], number, info):
            raise DatasetError(f"{dataset.root}: another replay is running: start again when it has ended")


def dead_letter_ranges(spark: SparkSession, root: str) -> list[OffsetRange]:
    dead_letter, pushes = (load_dataset(spark, root, table.name) for table in (DEAD_LETTER, PUSHES))
    rows = dead_letter.select(*SOURCE_KEY).distinct().join(pushes, SOURCE_KEY, "left_anti").collect()
    spans = joined((row["src_partition"], row["src_offset"], row["src_offset"] + 1) for row in rows)
    return [OffsetRange(*each) for each in spans]


def check_replay(root: str, options: ReadOptions) -> None:
    """Check without Spark that the dataset exists and the topic is readable.

    Raises:
        DatasetError: Nothing has been ingested.
        TopicError: The topic is unreadable.
    """
    Dataset(root).existing(PUSHES)
    with closing(TopicReader(options)) as reader:
        reader.partitions()


def ranges_since(root: str, options: ReadOptions, since: datetime) -> list[OffsetRange]:
    """The records of the topic since a time, which has a time zone, up to the end of ingest.

    Raises:
        TopicError: The topic is unreadable.
    """
    with closing(TopicReader(options)) as reader:
        partitions = reader.partitions()
        begin = reader.offsets_since(partitions, round(since.timestamp() * 1000))
    return ranges(begin, Dataset(root).source_offsets(PUSHES, options.topic, partitions))


def readable(dataset: Dataset, options: ReadOptions, wanted: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Check the ranges against the topic and split them into pieces for tasks.

    Raises:
        DatasetError: Ingest has not passed a range yet, and would add the same rows later.
        DataLoss: Retention deleted records, and ``failOnDataLoss`` is set.
    """
    partitions = sorted({each.partition for each in wanted})
    passed = dataset.source_offsets(PUSHES, options.topic, partitions)
    for each in wanted:
        reached = passed.get(each.partition, 0)
        if each.end > reached:
            raise DatasetError(
                f"{options.topic}-{each.partition}: the range ends at offset {each.end}, but ingest has only "
                f"reached {reached}: end the range there, ingest will add the rest"
            )
    if not wanted:
        return []
    left: list[OffsetRange] = []
    with closing(TopicReader(options)) as reader:
        marks = reader.watermarks(partitions)
        for each in wanted:
            end, mark = {each.partition: each.end}, {each.partition: marks[each.partition]}
            left += ranges(reader.reachable({each.partition: each.start}, end, mark), end)
        return tasks(left, reader.sizes(left), TASK_BYTES)


class Absent:
    """Drops rows of a range that a table has, or that were erased; a push does not become a dead letter.

    ``kept_from`` has the first day that a table keeps. Earlier rows have expired, and the jobs that follow
    the table have processed them.
    """

    def __init__(self, dataset: Dataset, found: OffsetRange, kept_from: Mapping[str, str]) -> None:
        self.dataset, self.found, self.kept_from = dataset, found, kept_from
        self.known: dict[str, NDArray[np.int64]] = {}
        self.erased = [
            (start, end)
            for partition, start, end in erased_ranges(dataset)
            if partition == found.partition and start < found.end and end > found.start
        ]

    def __call__(self, table: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, of those that were decoded again, that a table lacks."""
        if table not in self.known:
            self.known[table] = self.keys_of(table)
        is_new = pa.array(~np.isin(packed(rows, self.found.start), self.known[table]))
        is_kept = pc.greater_equal(rows["date"].cast(pa.string()), self.kept_from.get(table, ""))
        wanted = pc.and_(is_new, is_kept)
        for start, end in self.erased:
            offset = rows[OFFSET]
            outside = pc.or_(pc.less(offset, start), pc.greater_equal(offset, end))
            wanted = pc.and_(wanted, outside)
        return rows.filter(wanted)

    def keys_of(self, table: str) -> NDArray[np.int64]:
        """The keys of the range that a table has; files that cannot have any are skipped."""
        # Filter by offset only: each file has its range, while deltalake takes a column without one for null.
        near = (pc.field(OFFSET) >= self.found.start) & (pc.field(OFFSET) < self.found.end)
        names = [table] if table != DEAD_LETTER.name else [table, PUSHES.name]
        keys = []
        for name in names:
            columns = [each for each in (PARTITION, OFFSET, INDEX) if each in BY_NAME[name].schema.names]
            files = self.dataset.existing(BY_NAME[name]).to_pyarrow_dataset()
            rows = files.to_table(columns=columns, filter=near)
            there = rows.filter(pc.field(PARTITION) == self.found.partition)
            keys.append(packed(there, self.found.start))
        return np.concatenate(keys)


def packed(rows: pa.RecordBatch | pa.Table, start: int) -> NDArray[np.int64]:
    """The offset relative to ``start``, and the index in the push if the rows have one, as one number."""
    offsets: NDArray[np.int64] = rows[OFFSET].to_numpy(zero_copy_only=False) - start
    keys = offsets << INDEX_BITS
    if INDEX in rows.schema.names:
        keys += rows[INDEX].to_numpy(zero_copy_only=False)
    return keys
